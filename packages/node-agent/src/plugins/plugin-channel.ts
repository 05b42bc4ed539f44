import { type GrpcCodeName, grpcCodeNames } from "@coxswain/apimachinery/objects/errors/grpc-codes";
import { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";
import { asCallError } from "@coxswain/apimachinery/transport/grpc/grpc-error";
import type { MessageCodec, Received, Sent } from "../runtime/messages.ts";

/** A failed call: `rpc error: code = … desc = …`. */
export class PluginError extends Error {
  readonly code: GrpcCodeName;

  constructor(code: GrpcCodeName, details: string) {
    super(`rpc error: code = ${code} desc = ${details}`);
    this.code = code;
  }
}

/** gRPC client of a node plugin (devices, volumes, plugin registration) at a unix socket. */
export interface PluginChannel<M> {
  /**
   * @param method `/<package>.<Service>/<Method>`
   * @returns the decoded response and its bytes
   * @throws PluginError
   */
  call<Q extends keyof M & string, A extends keyof M & string>(
    method: string,
    request: Q,
    response: A,
    message: Sent<M, Q>,
    timeoutMs: number,
  ): Promise<{ answer: Received<M, A>; bytes: Buffer }>;
  /**
   * A call whose response is a stream of messages. Waits `connectMs` for the plugin.
   * @returns resolves when the stream has ended, however it ends
   */
  watch(method: string, request: Buffer, onMessage: (message: Buffer) => void, connectMs: number): Promise<void>;
  close(): void;
}

/** Creates a client for a socket. The connection is established by the first call. */
export function newPluginChannel<M>(socket: string, messages: MessageCodec<M>): PluginChannel<M> {
  // Callers retry failed calls, and a plugin may have restarted.
  const channel = new GrpcChannel(`unix://${socket}`, { longestBackoffMs: 1_000 });
  return {
    async call(method, request, response, message, timeoutMs) {
      try {
        const bytes = await channel.unary(method, messages.encode(request, message), timeoutMs);
        return { answer: messages.decode(response, bytes), bytes };
      } catch (err) {
        throw pluginErrorOf(err);
      }
    },
    async watch(method, request, onMessage, connectMs) {
      await channel.ready(connectMs).catch(() => {}); // the stream fails for the same reason
      await new Promise<void>((resolve) => {
        const stream = channel.stream(method, { message: onMessage, ended: () => resolve() });
        stream.write(request);
        stream.end();
      });
    },
    close: () => channel.close(),
  };
}

function pluginErrorOf(err: unknown): PluginError {
  const { code, details } = asCallError(err);
  return new PluginError(grpcCodeNames[code] ?? "Unknown", details);
}
