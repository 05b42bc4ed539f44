import { type GrpcCodeName, grpcCodeNames } from "@coxswain/apimachinery/errors/grpc-codes";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { MessageCodec } from "../runtime/messages.ts";

/** What a plugin answered instead of an answer: `rpc error: code = … desc = …`. */
export class PluginError extends Error {
  readonly code: GrpcCodeName;

  constructor(code: GrpcCodeName, details: string) {
    super(`rpc error: code = ${code} desc = ${details}`);
    this.code = code;
  }
}

/** Plugins of the node (devices, volumes, their registration) are gRPC servers behind unix sockets. */
export interface PluginChannel {
  /** For streams. */
  client: Client;
  /**
   * @param method `/<package>.<Service>/<Method>`
   * @returns the answer, and its bytes
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

/** A plugin that starts anew behind the same socket is found again soon: calls are tried again by whoever makes them. */
const reconnect = { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 1_000 };

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
