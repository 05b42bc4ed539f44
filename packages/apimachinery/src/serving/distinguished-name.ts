import { readAll, readString } from "./der.ts";

/**
 * What an X.509 Name says, read from its own bytes: text forms cannot tell separators from content, and what a user
 * writes into a name must come out of a signature as it went in.
 */
export interface Subject {
  /** `""` when there is none. */
  readonly commonName: string;
  /** In the order of the certificate, repeated ones too. */
  readonly organizations: string[];
}

/** By the last bytes of their object identifiers below 2.5.4. Source: RFC 5280 appendix A.1 */
const commonName = "550403";
const serialNumber = "550405";
const organization = "55040a";

/** What a signer takes over, in the order in which it writes it. Source: Go crypto/x509/pkix, Name.ToRDNSequence */
const takenOver: readonly { der: string; oid: string }[] = [
  { der: "550406", oid: "2.5.4.6" }, // country
  { der: organization, oid: "2.5.4.10" },
  { der: "55040b", oid: "2.5.4.11" }, // organizational unit
  { der: "550407", oid: "2.5.4.7" }, // locality
  { der: "550408", oid: "2.5.4.8" }, // province
  { der: "550409", oid: "2.5.4.9" }, // street
  { der: "550411", oid: "2.5.4.17" }, // postal code
  { der: commonName, oid: "2.5.4.3" },
  { der: serialNumber, oid: "2.5.4.5" },
];

/** Values by the hexadecimal object identifier of their type. @param name the content of the Name's SEQUENCE */
function attributesOf(name: Buffer): Map<string, string[]> {
  const attributes = new Map<string, string[]>();
  for (const set of readAll(name)) {
    for (const attribute of readAll(set.content)) {
      const [oid, value] = readAll(attribute.content);
      if (oid === undefined || value === undefined) continue;
      const type = oid.content.toString("hex");
      // A name has one common name and one serial number: the last that it gives.
      const before = type === commonName || type === serialNumber ? [] : (attributes.get(type) ?? []);
      attributes.set(type, [...before, readString(value)]);
    }
  }
  return attributes;
}

/** @param name the content of the Name's SEQUENCE @throws Error for malformed DER */
export function subjectOfName(name: Buffer): Subject {
  const attributes = attributesOf(name);
  return { commonName: attributes.get(commonName)?.[0] ?? "", organizations: attributes.get(organization) ?? [] };
}

/** One relative name: values by object identifier, each said to be text so that nobody looks for escapes in it. */
export type RelativeName = Record<string, { utf8String: string }[]>;

/** What a certificate says of a request's subject: the attributes that everyone reads alike, all values of one in one set. */
export function nameToSign(name: Buffer): RelativeName[] {
  const attributes = attributesOf(name);
  return takenOver.flatMap(({ der, oid }) => {
    const values = (attributes.get(der) ?? []).filter((value) => value !== "");
    return values.length === 0 ? [] : [{ [oid]: values.map((utf8String) => ({ utf8String })) }];
  });
}
