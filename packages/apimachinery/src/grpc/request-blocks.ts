import { encodeFields } from "../http2/wire/hpack-encoder.ts";

/** Blocks are cached; they are the same except for unusual deadlines. */
const mostBlocks = 64;

/** Encodes the header fields of calls. Blocks use no dynamic table, so that they can be concatenated. */
export class RequestBlocks {
  readonly #server: { readonly scheme: string; readonly authority: string; readonly userAgent?: string | undefined };
  readonly #known = new Map<string, Buffer>();

  constructor(server: { readonly scheme: string; readonly authority: string; readonly userAgent?: string | undefined }) {
    this.#server = server;
  }

  /**
   * @param path `/etcdserverpb.KV/Txn`
   * @param name of a further field, with its value; "": none
   */
  get(path: string, name: string, value: string, traceparent: string | undefined): Buffer {
    const block = this.#encoded(path, name, value);
    return traceparent === undefined ? block : Buffer.concat([block, encodeFields(["traceparent", traceparent])]);
  }

  #encoded(path: string, name: string, value: string): Buffer {
    const key = `${path} ${name} ${value}`;
    let block = this.#known.get(key);
    if (block === undefined) {
      const { scheme, authority, userAgent } = this.#server;
      const fields = {
        ":method": "POST",
        ":scheme": scheme,
        ":path": path,
        ":authority": authority,
        "content-type": "application/grpc",
        te: "trailers",
        ...(userAgent !== undefined && { "user-agent": userAgent }),
        ...(name !== "" && { [name]: value }),
      };
      block = encodeFields(Object.entries(fields).flat());
      if (this.#known.size >= mostBlocks) this.#known.clear();
      this.#known.set(key, block);
    }
    return block;
  }
}
