/** Records made with dns-packet, each encoded once and copied into the responses. */
import { isIPv4 } from "node:net";
import { type Answer, encode } from "dns-packet";
import { ownCopy } from "./own-copy.ts";
import { headerBytes, types } from "./protocol.ts";
import type { ResourceRecord } from "./reply.ts";

/** TTL of all records of the cluster: changes are to be seen soon. */
const clusterTtl = 5;

const ownerBytes = 3;
/** Behind owner, type, class and TTL. */
const dataAt = headerBytes + ownerBytes + 8;

function dataOf(answer: Answer): Buffer {
  return ownCopy(encode({ type: "response", answers: [answer] }).subarray(dataAt));
}

const owner = "x";

/** @param ip a valid address */
export function addressRecord(ip: string): ResourceRecord {
  if (isIPv4(ip)) return { type: types.A, ttl: clusterTtl, data: ownCopy(Uint8Array.of(0, 4, ...ip.split(".").map(Number))) };
  return { type: types.AAAA, ttl: clusterTtl, data: dataOf({ name: owner, type: "AAAA", data: ip }) };
}

/**
 * @param target without a final dot; it has to be encodable
 * @param weight share among the records of the same name, with priority 0 for all
 */
export function srvRecord(target: string, port: number, weight: number): ResourceRecord {
  const data = dataOf({ name: owner, type: "SRV", data: { priority: 0, weight, port, target } });
  return { type: types.SRV, ttl: clusterTtl, data };
}

/** A record whose data is one name. */
export function nameRecord(type: "CNAME" | "NS" | "PTR", target: string): ResourceRecord {
  return { type: types[type], ttl: clusterTtl, data: dataOf({ name: owner, type, data: target }) };
}

export function txtRecord(text: string): ResourceRecord {
  return { type: types.TXT, ttl: clusterTtl, data: dataOf({ name: owner, type: "TXT", data: text }) };
}

/** The answer to a query of type ANY (RFC 8482), which gets one record only. */
export function hinfoRecord(cpu: string): ResourceRecord {
  return { type: types.HINFO, ttl: 3600, data: dataOf({ name: owner, type: "HINFO", data: { cpu, os: "" } }) };
}

/** The record that is sent with negative answers of a zone. */
export function soaRecord(zone: string, serial: number): ResourceRecord {
  const data = {
    mname: `ns.dns.${zone}`,
    rname: `hostmaster.${zone}`,
    serial,
    refresh: 7200,
    retry: 1800,
    expire: 86_400,
    minimum: clusterTtl,
  };
  return {
    owner: encodeName(zone),
    type: types.SOA,
    ttl: clusterTtl,
    data: dataOf({ name: owner, type: "SOA", data }),
  };
}

/** @param name as `isEncodable` */
export function encodeName(name: string): Buffer {
  return ownCopy(encode({ type: "query", questions: [{ name, type: "A" }] }).subarray(headerBytes, -4));
}

/** Whether the name fits the wire format: labels of 1 to 63 characters, 253 together. */
export function isEncodable(name: string): boolean {
  return name.length <= 253 && name.split(".").every((label) => label.length > 0 && label.length <= 63);
}
