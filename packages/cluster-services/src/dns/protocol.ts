/** Numbers of the DNS protocol. Source: RFC 1035, RFC 2782, RFC 6891, IANA "Domain Name System (DNS) Parameters" */
export const types = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
} as const;

export const rcodes = { noError: 0, formErr: 1, servFail: 2, nxDomain: 3, notImp: 4, refused: 5, badVers: 16 } as const;

export const classIn = 1;

export const headerBytes = 12;

export const flags = { response: 0x8000, authoritative: 0x0400, truncated: 0x0200, recursionDesired: 0x0100, recursion: 0x0080 };
/** AD and CD of RFC 4035. */
export const checkingDisabled = 0x0010;

const typeNames = new Map<number, string>(Object.entries(types).map(([name, number]) => [number, name]));
const rcodeNames = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];

/** For metrics: few distinct values, whatever types clients query. */
export const typeName = (type: number): string => typeNames.get(type) ?? "other";
/** Label value of metrics; `other` for codes without a name. */
export const rcodeName = (rcode: number): string => rcodeNames[rcode] ?? (rcode === rcodes.badVers ? "BADVERS" : "other");
