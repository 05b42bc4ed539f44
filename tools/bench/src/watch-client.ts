import { openHttp2 } from "./http2-client.ts";

/** Many watches on one connection; only counts events. */
export interface WatchConnection {
  /** Resolves when the response begins; `onEvent` is called for each line. @throws Error for any status other than 200 */
  watch(path: string, onEvent: () => void): Promise<void>;
  close(): void;
}

const newline = 10;
const noHeaders = {};

export async function openWatchConnection(url: string, token: string, ca: Buffer | undefined): Promise<WatchConnection> {
  const client = await openHttp2(url, token, ca);
  return {
    watch: (path, onEvent) =>
      new Promise((resolve, reject) => {
        const failed = (err: Error): void => reject(new Error(`watch: ${err.message}`));
        client.send(
          { method: "GET", path, headers: noHeaders },
          {
            begun: (status) => (status === 200 ? resolve() : failed(new Error(`answered with ${status}`))),
            data(piece) {
              for (let at = piece.indexOf(newline); at !== -1; at = piece.indexOf(newline, at + 1)) onEvent();
            },
            ended: () => failed(new Error("ended")),
            failed,
          },
        );
      }),
    close: () => client.close(),
  };
}
