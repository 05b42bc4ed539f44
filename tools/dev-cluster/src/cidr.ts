/** An IPv4 network. */
export interface Cidr {
  /** The network address as a number. */
  readonly first: number;
  /** Prefix length, 0 to 32. */
  readonly prefix: number;
}

/** Parses `10.244.0.0/16`; undefined when it is not IPv4 CIDR notation or has host bits set. */
export function parseCidr(text: string): Cidr | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (match === null) return undefined;
  const [a, b, c, d, prefix] = match.slice(1).map(Number) as [number, number, number, number, number]; // cast: the pattern has five groups
  if (prefix > 32 || [a, b, c, d].some((byte) => byte > 255)) return undefined;
  const first = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
  return first % 2 ** (32 - prefix) === 0 ? { first, prefix } : undefined;
}

const sizeOf = (cidr: Cidr): number => 2 ** (32 - cidr.prefix);

/** The address at an offset from the network address, in dotted notation. */
export function addressAt(cidr: Cidr, offset: number): string {
  const value = cidr.first + offset;
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
}

export const formatCidr = (cidr: Cidr): string => `${addressAt(cidr, 0)}/${cidr.prefix}`;

export const overlaps = (a: Cidr, b: Cidr): boolean => a.first < b.first + sizeOf(b) && b.first < a.first + sizeOf(a);
