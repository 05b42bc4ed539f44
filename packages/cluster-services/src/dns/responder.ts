import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { recordsIn, resolveAliases } from "./alias.ts";
import { encodeName, hinfoRecord } from "./encode-record.ts";
import { ForwardError, type Forwarder } from "./forwarder.ts";
import type { LoopDetector } from "./loop-detector.ts";
import { classIn, rcodes, types } from "./protocol.ts";
import type { Query } from "./query.ts";
import { encodeRelayed, type Relayed } from "./relay-cache.ts";
import { encodeReply, plainReply, type Reply } from "./reply.ts";
import type { Zone } from "./zone.ts";

interface ResponderOptions {
  readonly zone: Zone;
  /** False until the zone was loaded: its names get SERVFAIL, because resolvers would cache NXDOMAIN. */
  readonly isReady: () => boolean;
  readonly forwarder: Forwarder;
  readonly loop: LoopDetector;
  readonly log: Logger;
}

export interface Response {
  readonly message: Buffer;
  readonly rcode: number;
}

/** From a query to its response. Returns a promise only where another server is queried; it does not reject. */
export type Responder = (query: Query, client: string, limitBytes: number) => Response | Promise<Response>;

/** Source: RFC 8482 */
const anyReply: Reply = { rcode: rcodes.noError, authoritative: false, answers: [hinfoRecord("RFC8482")] };

export function newResponder({ zone, isReady, forwarder, loop, log }: ResponderOptions): Responder {
  const failed = (query: Query, err: unknown, limit: number): Response => {
    log.v(2)?.info("cannot forward a query", { err: String(messageOf(err)), type: query.type });
    return encoded(query, plainReply(err instanceof ForwardError ? err.rcode : rcodes.servFail), limit);
  };
  const relay = (query: Query, client: string, limit: number): Response | Promise<Response> => {
    if (loop.saw(query.name) || loop.isLoop) return encoded(query, plainReply(rcodes.servFail), limit);
    const respond = (relayed: Relayed): Response => ({ message: encodeRelayed(query, relayed, limit), rcode: relayed.rcode });
    const relayed = forwarder.forward(query, client);
    return relayed instanceof Promise ? relayed.then(respond).catch((err) => failed(query, err, limit)) : respond(relayed);
  };
  const continued = async (query: Query, own: Reply, alias: string, client: string): Promise<Reply> => {
    const question = Buffer.concat([encodeName(alias), query.question.subarray(-4)]);
    const relayed = await forwarder.forward({ ...query, name: alias, question, edns: undefined }, client);
    const { rcode } = relayed;
    return { ...own, rcode, answers: rcode === rcodes.noError ? [...own.answers, ...recordsIn(relayed)] : own.answers };
  };

  return (query, client, limit) => {
    const { name, type } = query;
    if (query.class !== classIn || type === types.AXFR || type === types.IXFR)
      return encoded(query, plainReply(rcodes.refused), limit);
    if (type === types.ANY) return encoded(query, anyReply, limit);
    const relative = zone.relative(name);
    const reverse = relative === undefined && isReady() ? zone.findReverse(name) : undefined;
    if (relative === undefined && reverse === undefined) return relay(query, client, limit);
    if (!isReady()) return encoded(query, plainReply(rcodes.servFail), limit);
    const { rcode, answers, additionals, alias } = resolveAliases(zone, reverse ?? zone.find(relative!, type), type);
    const own: Reply = {
      rcode,
      authoritative: rcode !== rcodes.servFail,
      answers,
      ...(answers.length === 0 && { authorities: [zone.soa] }),
      ...(additionals !== undefined && { additionals }),
      // CNAME records must precede the records of their target.
      ...(answers.length > 1 && answers[0]?.type === type && { rotation: Math.floor(Math.random() * answers.length) }),
    };
    if (alias === undefined) return encoded(query, own, limit);
    if (loop.isLoop) return encoded(query, plainReply(rcodes.servFail), limit);
    return continued(query, own, alias, client).then(
      (reply) => encoded(query, reply, limit),
      (err: unknown) => failed(query, err, limit),
    );
  };
}

const encoded = (query: Query, reply: Reply, limit: number): Response => ({
  message: encodeReply(query, reply, limit),
  rcode: reply.rcode,
});
