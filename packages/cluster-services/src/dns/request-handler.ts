import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Clients } from "./clients.ts";
import type { DnsMetrics, DnsTransport } from "./metrics.ts";
import { rcodes } from "./protocol.ts";
import { parseQuery, type Query } from "./query.ts";
import { encodeReply, mostTcpBytes, plainReply, udpLimit } from "./reply.ts";
import type { Responder, Response } from "./responder.ts";

/** @returns the response to a message; undefined: it gets none */
export type RequestHandler = (
  message: Buffer,
  client: string,
  transport: DnsTransport,
) => Buffer | undefined | Promise<Buffer | undefined>;

interface RequestHandlerOptions {
  readonly clients: Clients;
  readonly respond: Responder;
  readonly metrics: DnsMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Longest message that may be a query; more is not looked at. */
const mostQueryBytes = 4_096;

/** Handles every message of both transports. An exception costs one response, never the process. */
export function newRequestHandler({ clients, respond, metrics, clock, log }: RequestHandlerOptions): RequestHandler {
  const broken = (query: Query, err: unknown, limit: number): Response => {
    metrics.failed();
    log.error("cannot answer a DNS query", err, { type: query.type });
    return { message: encodeReply(query, plainReply(rcodes.servFail), limit), rcode: rcodes.servFail };
  };
  return (message, client, transport) => {
    const admitted = clients.admit(client);
    if (admitted !== "yes") return dropped(metrics, admitted === "stranger" ? "client" : "rate");
    if (message.length > mostQueryBytes) return dropped(metrics, "size");
    const parsed = parseQuery(message);
    const query = "rcode" in parsed ? parsed.query : parsed;
    const limit = transport === "udp" ? udpLimit(query) : mostTcpBytes;
    const started = clock.monotonic();
    const finish = ({ message: response, rcode }: Response): Buffer => {
      metrics.answered(transport, query.type, rcode, response.length, (clock.monotonic() - started) / 1000);
      return response;
    };
    if ("rcode" in parsed) {
      if (parsed.rcode === undefined) return dropped(metrics, "malformed");
      return finish({ message: encodeReply(query, plainReply(parsed.rcode), limit), rcode: parsed.rcode });
    }
    try {
      const response = respond(query, client, limit);
      return response instanceof Promise
        ? response.catch((err: unknown) => broken(query, err, limit)).then(finish)
        : finish(response);
    } catch (err) {
      return finish(broken(query, err, limit));
    }
  };
}

function dropped(metrics: DnsMetrics, reason: Parameters<DnsMetrics["dropped"]>[0]): undefined {
  metrics.dropped(reason);
  return undefined;
}
