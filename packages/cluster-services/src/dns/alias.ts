import { decode } from "dns-packet";
import { addressRecord, encodeName, isEncodable, nameRecord } from "./encode-record.ts";
import { rcodes, types } from "./protocol.ts";
import type { Relayed } from "./relay-cache.ts";
import type { ResourceRecord } from "./reply.ts";
import type { Found, Zone } from "./zone.ts";

interface Resolved {
  readonly rcode: number;
  readonly answers: readonly ResourceRecord[];
  readonly additionals?: readonly ResourceRecord[] | undefined;
  /** Name outside of the zone that the answer continues with. */
  readonly alias?: string;
}

const mostLinks = 8;

/** The answer to a question, with the CNAME records on the way to it as far as the zone knows them. */
export function resolveAliases(zone: Zone, first: Found | undefined, type: number): Resolved {
  const answers: ResourceRecord[] = [];
  let owner: Buffer | undefined;
  for (let found = first, links = 0; ; links++) {
    if (found === undefined) return { rcode: rcodes.nxDomain, answers };
    const { alias, records, additionals } = found;
    const isEnd = alias === undefined || type === types.CNAME;
    for (const record of records) {
      if (!isEnd || record.type === type) answers.push(owner === undefined ? record : { ...record, owner });
    }
    if (isEnd) return { rcode: rcodes.noError, answers, additionals: type === types.SRV ? additionals : undefined };
    if (links >= mostLinks) return { rcode: rcodes.servFail, answers: [] };
    const relative = zone.relative(alias);
    if (relative === undefined) return { rcode: rcodes.noError, answers, ...(isAddressType(type) && { alias }) };
    owner = encodeName(alias);
    found = zone.find(relative, type);
  }
}

const isAddressType = (type: number): boolean => type === types.A || type === types.AAAA;

/**
 * The records by which another server's answer continues an alias: addresses and further aliases.
 * @throws Error for a malformed message
 */
export function recordsIn({ message, ageSeconds = 0 }: Relayed): ResourceRecord[] {
  return (decode(message).answers ?? []).flatMap((answer) => {
    if (answer.type !== "A" && answer.type !== "AAAA" && answer.type !== "CNAME") return [];
    const { name, data } = answer;
    if (!isEncodable(name) || (answer.type === "CNAME" && !isEncodable(data))) return [];
    const record = answer.type === "CNAME" ? nameRecord("CNAME", data) : addressRecord(data);
    return [{ ...record, owner: encodeName(name), ttl: Math.max(0, (answer.ttl ?? 0) - ageSeconds) }];
  });
}
