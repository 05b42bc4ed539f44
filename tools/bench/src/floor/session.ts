import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";

/** One connection of Node's HTTP/2, on which nothing is decoded. */
export class BareSession {
  readonly #session: ClientHttp2Session;
  readonly #common: Readonly<Record<string, string>>;
  /** Bytes of watch events so far. */
  received = 0;

  /** @param kubeconfig path of a file that `startControlPlane` wrote */
  constructor(kubeconfig: string) {
    // Cast: written by `startControlPlane`.
    const config = JSON.parse(readFileSync(kubeconfig, "utf8")) as {
      clusters: { cluster: { server: string; "certificate-authority-data"?: string } }[];
      users: { user: { token: string } }[];
    };
    const { server, "certificate-authority-data": ca = "" } = config.clusters[0]!.cluster;
    this.#session = connect(server, { ca: Buffer.from(ca, "base64") });
    this.#common = { authorization: `Bearer ${config.users[0]!.user.token}`, accept: "application/vnd.kubernetes.protobuf" };
  }

  /** Resolves when the response has ended. @throws Error for a status code of 300 and above */
  request(method: string, path: string, body: string, contentType = "application/json"): Promise<void> {
    const headers = { ...this.#common, "content-type": contentType, ":method": method, ":path": path };
    const stream = this.#session.request(headers, { endStream: false });
    let status = 0;
    stream.once("response", (response) => {
      status = Number(response[":status"]);
    });
    stream.resume();
    stream.end(body);
    return new Promise((resolve, reject) => {
      const ended = (): void => (status < 300 ? resolve() : reject(new Error(`${method} ${path}: ${status}`)));
      stream.once("end", ended).once("error", reject);
    });
  }

  watch(path: string): void {
    this.#session.request({ ...this.#common, ":path": path }).on("data", ({ length }: Buffer) => {
      this.received += length;
    });
  }

  close(): void {
    this.#session.destroy();
  }
}

/** CPU seconds of this process since `before`, with two decimals. */
export function cpuSince(before: NodeJS.CpuUsage): string {
  const { user, system } = process.cpuUsage(before);
  return ((user + system) / 1e6).toFixed(2);
}
