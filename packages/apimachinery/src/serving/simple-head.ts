/** A request over HTTP/1.1 as nearly all of them are: GET, a path, and fields that say nothing of the connection. */
export interface SimpleHead {
  /** As the client sent it. */
  readonly url: string;
  /** Name, value, name, value, … as they came. */
  readonly fields: readonly string[];
  /** The names in lower case, no two alike. */
  readonly names: readonly string[];
}

/** Longer ones are rare, and may come in pieces. */
const longestHeadBytes = 8 * 1024;

/** Each is compared with all before it. */
const mostFields = 64;

/** What one connection sends. Clients repeat their fields with each request: those of the last one are not read again. */
export class SimpleHeadReader {
  #block = "";
  #fields: Fields | undefined;

  /** @returns undefined when the bytes are anything but one whole simple request, right or wrong */
  read(bytes: Buffer): SimpleHead | undefined {
    if (bytes.length > longestHeadBytes) return undefined;
    const text = bytes.toString("latin1");
    const lineEnd = text.indexOf("\r\n");
    const targetEnd = lineEnd - version.length;
    if (!text.startsWith("GET /") || !text.startsWith(version, targetEnd)) return undefined;
    const url = text.slice(4, targetEnd);
    if (!visible.test(url)) return undefined;
    const block = text.slice(lineEnd);
    if (block !== this.#block) {
      this.#fields = fieldsOf(block);
      this.#block = this.#fields === undefined ? "" : block;
    }
    return this.#fields && { url, ...this.#fields };
  }
}

const version = " HTTP/1.1";
const visible = /^[!-~]+$/;
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const printable = /^[\t -~]*$/;

/** Of a body, of the connection, or of what comes next. */
const notSimple: ReadonlySet<string> = new Set(
  "content-length expect http2-settings keep-alive proxy-connection te trailer transfer-encoding upgrade".split(" "),
);

type Fields = Omit<SimpleHead, "url">;

/** @param block with the end of the line before it, and an empty line at its end */
function fieldsOf(block: string): Fields | undefined {
  if (!block.endsWith("\r\n\r\n")) return undefined;
  const fields: string[] = [];
  const names: string[] = [];
  const lines = block.slice(2, -4).split("\r\n", mostFields + 1);
  if (lines.length > mostFields) return undefined;
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    const value = line.slice(colon + 1);
    const lower = name.toLowerCase();
    if (!token.test(name) || !printable.test(value) || notSimple.has(lower) || names.includes(lower)) return undefined;
    if (lower === "connection" && value.trim().toLowerCase() !== "keep-alive") return undefined;
    fields.push(name, value.trim());
    names.push(lower);
  }
  return names.includes("host") ? { fields, names } : undefined;
}
