import type { X509Certificate } from "node:crypto";
import { readAll, readElement } from "./der.ts";
import { type Subject, subjectOfName } from "./distinguished-name.ts";

/**
 * What Node does not tell of a certificate. Servers read it of all who come, and need not load what makes certificates for it.
 */

/** Read from the certificate's own bytes: node's text form cannot tell separators from content. */
export function subjectOf(certificate: X509Certificate): Subject {
  const fields = fieldsOf(certificate);
  const version = fields[0]?.tag === 0xa0 ? 1 : 0; // serial, algorithm, issuer, validity, then the subject
  const subject = fields[version + 4];
  if (subject === undefined) throw new Error("malformed certificate");
  return subjectOfName(subject.content);
}

/** How many intermediates an authority allows below itself; undefined: any number. Source: RFC 5280 4.2.1.9 */
export function pathLengthOf(certificate: X509Certificate): number | undefined {
  let length = pathLengths.get(certificate);
  if (length === undefined) {
    length = { value: readPathLength(certificate) };
    pathLengths.set(certificate, length);
  }
  return length.value;
}

const pathLengths = new WeakMap<X509Certificate, { readonly value: number | undefined }>();
const basicConstraints = Buffer.from("551d13", "hex"); // 2.5.29.19

function readPathLength(certificate: X509Certificate): number | undefined {
  const extensions = fieldsOf(certificate).find(({ tag }) => tag === 0xa3)?.content;
  if (extensions === undefined) return undefined;
  for (const { content } of readAll(readElement(extensions, 0).content)) {
    const [id, ...rest] = readAll(content); // whether it is critical, if so, and the value
    if (!id?.content.equals(basicConstraints)) continue;
    const value = rest.at(-1)?.content ?? Buffer.alloc(0);
    // Whether it is an authority, if so, and the length.
    const length = readAll(readElement(value, 0).content).find(({ tag }) => tag === 0x02)?.content;
    return length === undefined ? undefined : Number(BigInt(`0x${length.toString("hex") || "0"}`));
  }
  return undefined;
}

/** Of the part that is signed. */
function fieldsOf(certificate: X509Certificate): ReturnType<typeof readAll> {
  const [signed] = readAll(readElement(certificate.raw, 0).content);
  return readAll((signed as { content: Buffer }).content);
}
