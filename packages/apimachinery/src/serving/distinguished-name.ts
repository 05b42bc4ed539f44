import { readAll, readString } from "./der.ts";

/** The parts of an X.509 Name that identify a user, parsed from DER: text forms do not escape separators. */
export interface Subject {
  /** `""` without a common name. */
  readonly commonName: string;
  /** In the order of the certificate, duplicates included. */
  readonly organizations: string[];
}

/** DER content of the object identifiers. Source: RFC 5280 appendix A.1 */
const commonName = "550403";
const serialNumber = "550405";
const organization = "55040a";

/** Attributes that are copied into a signed certificate, in output order. Source: Go crypto/x509/pkix, Name.ToRDNSequence */
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

/** Values by attribute type (DER of the object identifier, in hex). @param name the content of the Name's SEQUENCE */
function attributesOf(name: Buffer): Map<string, string[]> {
  const attributes = new Map<string, string[]>();
  for (const set of readAll(name)) {
    for (const attribute of readAll(set.content)) {
      const [oid, value] = readAll(attribute.content);
      if (oid === undefined || value === undefined) continue;
      const type = oid.content.toString("hex");
      // Of repeated common names or serial numbers the last one counts, as in Go.
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

/** One RDN: values by object identifier, typed as UTF8String so that the library does not interpret escapes. */
type RelativeName = Record<string, { utf8String: string }[]>;

/**
 * The subject of a signed certificate for a request's subject: the known attributes, with all values of one attribute in one RDN.
 */
export function nameToSign(name: Buffer): RelativeName[] {
  const attributes = attributesOf(name);
  return takenOver.flatMap(({ der, oid }) => {
    const values = (attributes.get(der) ?? []).filter((value) => value !== "");
    return values.length === 0 ? [] : [{ [oid]: values.map((utf8String) => ({ utf8String })) }];
  });
}
