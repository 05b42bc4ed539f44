import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import type { GrpcCalls } from "@coxswain/apimachinery/transport/grpc/calls";
import { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";

/** Client certificate and key, PEM. */
export interface EtcdIdentity {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Path of the certificate, for error messages. */
  readonly certFile: string;
}

interface EtcdChannelOptions {
  /** PEM. */
  readonly ca?: Buffer | undefined;
  readonly cert?: Buffer | undefined;
  readonly key?: Buffer | undefined;
  /** The current client certificate, used instead of `cert` and `key` for each new connection. */
  readonly identity?: (() => EtcdIdentity | undefined) | undefined;
  /** Metrics of calls. */
  readonly calls?: GrpcCalls | undefined;
  /** Dials the server; undefined: directly. */
  readonly connect?: Connect | undefined;
}

/** Watch streams are idle for long periods. etcd treats pings more often than every 5 s as abuse. */
const keepalive = {
  clock: realClock,
  checkMs: 500,
  silenceMs: 1_000,
  streamSilenceMs: 30_000,
  pingTimeoutMs: 2_000,
  leastPingMs: 6_000,
};

/**
 * A connection to one member of etcd, whose responses may have any size. When the member does not answer pings while calls are
 * pending, the connection is destroyed and the calls fail at once.
 * @param server `https://10.0.0.1:2379`; without a scheme: plain http
 */
export function newEtcdChannel(server: string, options: EtcdChannelOptions): GrpcChannel {
  const { ca, cert, key, identity, calls, connect } = options;
  return new GrpcChannel(server, {
    identity: () => ({ ca, cert, key, ...identity?.() }),
    ...{ calls, connect, keepalive },
    connectTimeoutMs: connect === undefined ? 2_000 : 5_000, // a proxy has to reach the server first
    mostMessageBytes: Number.POSITIVE_INFINITY,
  });
}
