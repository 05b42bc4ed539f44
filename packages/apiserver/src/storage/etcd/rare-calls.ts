import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";
import type { ChannelCredentials, Client as GrpcClient } from "@grpc/grpc-js";
import type { EtcdChannelOptions } from "./channel.ts";
import { etcdErrorOf } from "./errors.ts";

/**
 * Rare calls to one member (compaction, status) through etcd3, which is imported on first use because loading it takes a
 * tenth of the server's startup time. Uses its channel with raw bytes: its own calls have no deadline, and its circuit
 * breaker stays open for 5 s.
 */
export function newRareCalls(server: string, options: EtcdChannelOptions): Pick<GrpcChannel, "unary" | "close"> {
  let channel: Promise<Channel> | undefined;
  let shown: Buffer | undefined;
  /** Reopens the channel when the certificate was renewed: grpc-js keeps the one it was created with. */
  const current = (): Promise<Channel> => {
    const identity = options.identity?.();
    if (channel !== undefined && identity !== undefined && shown?.equals(identity.cert) === false) {
      void channel.then((open) => open.close());
      channel = undefined;
    }
    shown = identity?.cert;
    channel ??= openChannel(server, { ...options, ...identity });
    return channel;
  };
  return {
    async unary(path, message, timeoutMs) {
      const deadline = Date.now() + timeoutMs;
      const client = (await current()).service(/\.(\w+)\//.exec(path)?.[1] as Service);
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(path, identity, identity, message, { deadline }, (err, answer) =>
          err === null ? resolve(answer as Buffer) : reject(etcdErrorOf(err)),
        );
      });
    },
    close() {
      void channel?.then((open) => open.close());
    },
  };
}

const identity = (bytes: Buffer): Buffer => bytes;
type Service = "KV" | "Maintenance";

interface Channel {
  service(name: Service): GrpcClient;
  close(): void;
}

async function openChannel(server: string, options: EtcdChannelOptions): Promise<Channel> {
  const [{ Etcd3 }, { credentials }] = await library();
  const ip = ipOf(server);
  /** Exposes etcd3's internal gRPC clients. */
  class RawEtcd extends Etcd3 {
    get host(): { channelCredentials: ChannelCredentials; getServiceClient(name: Service): GrpcClient } {
      return (this.pool as unknown as { hosts: RawEtcd["host"][] }).hosts[0] as RawEtcd["host"];
    }
  }
  const etcd = new RawEtcd({
    hosts: server,
    grpcOptions: {
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 3_000,
      // No shared subchannels with other clients of this process (tests open several).
      "grpc.use_local_subchannel_pool": 1,
      ...(ip !== undefined && { "grpc.ssl_target_name_override": "etcd" }),
    },
  });
  if (server.startsWith("https://")) {
    // etcd3 accepts a CA and a key pair, but no custom verification of the peer. grpc-js sends the host as the TLS server
    // name, which Node rejects for IP addresses: use `etcd` as the name then, and verify the certificate against the address.
    const verify =
      ip === undefined ? {} : { checkServerIdentity: (_host: string, peer: PeerCertificate) => checkServerIdentity(ip, peer) };
    etcd.host.channelCredentials = credentials.createSsl(options.ca ?? null, options.key ?? null, options.cert ?? null, verify);
  }
  return { service: (name) => etcd.host.getServiceClient(name), close: () => etcd.close() };
}

/** Loads etcd3 after grpc-js, each in an event-loop turn of its own: together they take more than 100 ms of CPU. */
async function library() {
  const grpc = await import("@grpc/grpc-js");
  await new Promise((resolve) => void setImmediate(resolve));
  return [await import("etcd3"), grpc] as const;
}

/** The IP address of an https server; undefined for host names and plain http. */
function ipOf(server: string): string | undefined {
  if (!server.startsWith("https://")) return undefined;
  const host = new URL(server).hostname.replace(/^\[|\]$/g, "");
  return isIP(host) === 0 ? undefined : host;
}
