import { type GrpcCodeName, grpcCodeNames } from "@coxswain/apimachinery/errors/grpc-codes";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { MessageCodec } from "../runtime/messages.ts";

/** A failed call: `rpc error: code = … desc = …`. */
export class PluginError extends Error {
  readonly code: GrpcCodeName;

  constructor(code: GrpcCodeName, details: string) {
    super(`rpc error: code = ${code} desc = ${details}`);
    this.code = code;
  }
}

/** gRPC client of a node plugin (devices, volumes, plugin registration) at a unix socket. */
export interface PluginChannel {
  /** For streaming calls. */
  client: Client;
  /**
   * @param method `/<package>.<Service>/<Method>`
   * @returns the decoded response and its bytes
   * @throws PluginError
   */
  call(
    method: string,
    request: string,
    response: string,
    message: object,
    timeoutMs: number,
  ): Promise<{ answer: Record<string, unknown>; bytes: Buffer }>;
  close(): void;
}

/** Reconnect quickly to a restarted plugin; callers retry failed calls. */
const reconnect = { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 1_000 };

/** Creates a client for a socket. The connection is established by the first call. */
export function newPluginChannel(socket: string, messages: MessageCodec): PluginChannel {
  const client = new Client(`unix://${socket}`, credentials.createInsecure(), reconnect);
  return {
    client,
    call: (method, request, response, message, timeoutMs) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          method,
          (body: object) => messages.encode(request, body),
          (bytes: Buffer) => ({ answer: messages.decode(response, bytes), bytes }),
          message,
          new Metadata(),
          { deadline: Date.now() + timeoutMs },
          (err: ServiceError | null, answer?: { answer: Record<string, unknown>; bytes: Buffer }) => {
            if (err === null && answer !== undefined) resolve(answer);
            else reject(new PluginError(grpcCodeNames[err?.code ?? 2] ?? "Unknown", err?.details ?? ""));
          },
        );
      }),
    close: () => client.close(),
  };
}
