/** What a caller has of a server. */

/** Options of {@link TranslationServer.listen}. */
export interface ListenOptions {
  /** The address to listen on. Default `'127.0.0.1'`: this machine only; `'0.0.0.0'`: all networks. */
  host?: string | undefined;
  /** The port; 0: any free one. Default 5000. */
  port?: number | undefined;
}

/** Options of {@link TranslationServer.close}. */
export interface CloseOptions {
  /** Seconds that running requests are given to finish; then they get status 503. Default 30. */
  gracePeriod?: number | undefined;
}

/** A server made by `createServer`. */
export interface TranslationServer {
  /**
   * Starts to take requests.
   *
   * @returns the address, such as `'http://127.0.0.1:5000'`
   * @throws Error with the code `EADDRINUSE` if the port is taken, and others of `node:net`
   */
  listen(options?: ListenOptions): Promise<string>;
  /**
   * Takes no new requests (status 503 on open connections), waits for those that run, then unloads the
   * models. Further calls return when the first does.
   */
  close(options?: CloseOptions): Promise<void>;
}
