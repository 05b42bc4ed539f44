import type { X509Certificate } from "node:crypto";
import { readAll, readElement } from "./der.ts";
import { type Subject, subjectOfName } from "./distinguished-name.ts";

/**
 * Certificate fields that Node's API does not expose. Kept apart from `certificates.ts`, so that servers need not load the
 * library that issues certificates.
 */

/** Parses the subject from the DER encoding, because Node's text form does not escape separators. */
export function subjectOf(certificate: X509Certificate): Subject {
  const fields = fieldsOf(certificate);
  const version = fields[0]?.tag === 0xa0 ? 1 : 0; // serial, algorithm, issuer, validity, then the subject
  const subject = fields[version + 4];
  if (subject === undefined) throw new Error("malformed certificate");
  return subjectOfName(subject.content);
}

/** Path length constraint of an authority; undefined: unlimited. Source: RFC 5280 4.2.1.9 */
export function pathLengthOf(certificate: X509Certificate): number | undefined {
  let length = pathLengths.get(certificate);
  if (length === undefined) {
    length = { value: readPathLength(certificate) };
    pathLengths.set(certificate, length);
  }
  return length.value;
}

/** A pure cache: certificates do not change. */
const pathLengths = new WeakMap<X509Certificate, { readonly value: number | undefined }>();
const basicConstraints = Buffer.from("551d13", "hex"); // 2.5.29.19

function readPathLength(certificate: X509Certificate): number | undefined {
  const extensions = fieldsOf(certificate).find(({ tag }) => tag === 0xa3)?.content;
  if (extensions === undefined) return undefined;
  for (const { content } of readAll(readElement(extensions, 0).content)) {
    const [id, ...rest] = readAll(content); // an optional `critical` flag and the value
    if (!id?.content.equals(basicConstraints)) continue;
    const value = rest.at(-1)?.content ?? Buffer.alloc(0);
    // An optional `cA` flag and the optional path length.
    const length = readAll(readElement(value, 0).content).find(({ tag }) => tag === 0x02)?.content;
    return length === undefined ? undefined : Number(BigInt(`0x${length.toString("hex") || "0"}`));
  }
  return undefined;
}

/** The fields of the TBSCertificate. */
function fieldsOf(certificate: X509Certificate): ReturnType<typeof readAll> {
  const [signed] = readAll(readElement(certificate.raw, 0).content);
  return readAll(signed!.content);
}
