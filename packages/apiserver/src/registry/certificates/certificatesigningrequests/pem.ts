import { X509Certificate } from "node:crypto";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";

/** A decoded PEM block. Source: encoding/pem; pkg/apis/certificates/helpers.go ParseCSR */
interface PemBlock {
  readonly type: string;
  readonly headers: boolean;
  readonly bytes: Buffer;
}

const begin = "-----BEGIN ";
const endMark = "\n-----END ";
const dashes = "-----";

/**
 * Decodes all PEM blocks and skips text between them. A block ends at the next END line of any type. The position of that
 * line is reused for all BEGIN lines before it; otherwise many BEGIN lines would take quadratic time.
 */
function pemBlocks(data: Buffer): PemBlock[] {
  const text = data.toString("latin1").replaceAll("\r\n", "\n");
  const blocks: PemBlock[] = [];
  let end = 0;
  for (let at = text.indexOf(begin); at >= 0; at = text.indexOf(begin, at)) {
    const from = at;
    at += begin.length;
    if (from > 0 && text[from - 1] !== "\n") continue;
    const lineEnd = text.indexOf("\n", from);
    if (lineEnd < 0) break;
    if (end < lineEnd) end = text.indexOf(endMark, lineEnd);
    if (end < 0) break;
    const line = text.slice(from, lineEnd).trimEnd();
    const type = line.slice(begin.length, -dashes.length);
    if (!line.endsWith(dashes) || !text.startsWith(`${endMark}${type}${dashes}`, end)) continue;
    const body = text.slice(lineEnd + 1, Math.max(end, lineEnd + 1));
    const headers = body.includes(":");
    const base64 = headers ? body.slice(body.indexOf("\n\n") + 2) : body;
    if (/^[A-Za-z0-9+/=\s]*$/.test(base64)) blocks.push({ type, headers, bytes: Buffer.from(base64, "base64") });
    at = end + 1;
  }
  return blocks;
}

/** @returns the error text for an invalid certificate request; undefined when it is valid */
export function certificateRequestFault(data: Buffer): string | undefined {
  const [block] = pemBlocks(data);
  if (block?.type !== "CERTIFICATE REQUEST") return "PEM block type must be CERTIFICATE REQUEST";
  return requestFault(block.bytes);
}

const [sequence, integer, bitString] = [0x30, 0x02, 0x03];

/** Checks the ASN.1 structure of a PKCS #10 request: info (version, subject, key), algorithm and signature. RFC 2986 */
function requestFault(bytes: Buffer): string | undefined {
  const outer = element(bytes, 0);
  if (outer === undefined) return "asn1: syntax error: data truncated";
  if (outer.tag !== sequence) return "asn1: structure error: tags don't match";
  if (outer.end < bytes.length) return "asn1: syntax error: trailing data";
  const parts = elements(outer.content);
  if (parts?.map(({ tag }) => tag).join() !== [sequence, sequence, bitString].join())
    return "asn1: structure error: tags don't match";
  const info = elements(parts[0]!.content);
  if (
    info
      ?.slice(0, 3)
      .map(({ tag }) => tag)
      .join() !== [integer, sequence, sequence].join()
  )
    return "asn1: structure error: tags don't match";
  const key = elements(info[2]!.content);
  if (key?.map(({ tag }) => tag).join() !== [sequence, bitString].join()) return "asn1: structure error: tags don't match";
  return undefined;
}

interface Element {
  readonly tag: number;
  readonly content: Buffer;
  readonly end: number;
}

/** Parses one DER element; undefined when it is truncated. */
function element(bytes: Buffer, at: number): Element | undefined {
  const [tag, first] = [bytes[at], bytes[at + 1]];
  if (tag === undefined || first === undefined) return undefined;
  let start = at + 2;
  let length = first;
  if (first >= 0x80) {
    const size = first & 0x7f;
    if (size === 0 || size > 4 || start + size > bytes.length) return undefined;
    length = bytes.readUIntBE(start, size);
    start += size;
  }
  const end = start + length;
  return end > bytes.length ? undefined : { tag, content: bytes.subarray(start, end), end };
}

function elements(bytes: Buffer): Element[] | undefined {
  const list: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const next = element(bytes, at);
    if (next === undefined) return undefined;
    list.push(next);
    at = next.end;
  }
  return list;
}

/** @returns the error text for invalid certificates, if any. Source: pkg/apis/certificates/validation validateCertificate */
export function certificateFault(data: Buffer): string | undefined {
  const blocks = pemBlocks(data);
  if (blocks.length === 0) return "must contain at least one CERTIFICATE PEM block";
  for (const { type, headers, bytes } of blocks) {
    if (type !== "CERTIFICATE") return `only CERTIFICATE PEM blocks are allowed, found ${goQuote(type)}`;
    if (headers) return "no PEM block headers are permitted";
    try {
      new X509Certificate(bytes);
    } catch {
      return "x509: malformed certificate";
    }
  }
  return undefined;
}

/** Bytes formatted like Go's `%#v`. */
export function goBytes(bytes: Uint8Array): GoText {
  if (bytes.length === 0) return new GoText("[]byte(nil)");
  return new GoText(`[]byte{${Array.from(bytes, (byte) => goByte[byte]).join(", ")}}`);
}

/** Precomputed, because a request may have a megabyte. */
const goByte = Array.from({ length: 256 }, (_, byte) => `0x${byte.toString(16)}`);
