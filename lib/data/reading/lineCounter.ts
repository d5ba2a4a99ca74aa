/**
 * Converts byte offsets in a stream to line numbers, counted from 1. A line ends with LF, CRLF or a
 * lone CR. Offsets must be requested in ascending order, so that earlier lines can be dropped.
 */
export class LineCounter {
  private starts: number[] = [];
  private next = 0;
  private line = 1;
  private length = 0;
  private afterReturn = false;

  push(chunk: Uint8Array): void {
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      const offset = this.length + i;
      if (byte === 10) this.starts.push(offset + 1);
      // Only now is it known that the preceding CR is not part of a CRLF.
      else if (this.afterReturn) this.starts.push(offset);
      this.afterReturn = byte === 13;
    }
    this.length += chunk.length;
  }

  /** The line of the byte at this offset. */
  lineAt(offset: number): number {
    while (this.next < this.starts.length && (this.starts[this.next] as number) <= offset) {
      this.next++;
      this.line++;
    }
    if (this.next > 4096) {
      this.starts.splice(0, this.next);
      this.next = 0;
    }
    return this.line;
  }
}
