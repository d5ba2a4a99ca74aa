/** What is answered to connections that do not send a proper HTTP request. */
import type { Socket } from 'node:net';

const answers: Readonly<Record<string, readonly [string, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request took too long to arrive'],
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The headers are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Payload Too Large', 'The request is too large'],
};

/** Answers with an error body, and closes the connection. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) {
    socket.destroy();
    return;
  }
  const [status, message] = answers[error.code ?? ''] ?? [
    '400 Bad Request',
    'The request is not HTTP',
  ];
  const body = JSON.stringify({ error: message });
  // A response may have begun; then nothing can be told.
  const begun = socket.bytesWritten > 0;
  if (socket.writable && !begun) {
    socket.end(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
    return;
  }
  socket.destroy();
}
