import { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";
import { asGrpcError } from "@coxswain/apimachinery/transport/grpc/grpc-error";
import protobuf from "protobufjs";
import { type ProbeOutcome, probeUserAgent } from "./http.ts";

const serving = 1;
const statusNames = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/**
 * Succeeds when `grpc.health.v1.Health/Check` returns SERVING.
 * Source: pkg/probe/grpc/grpc.go, gRPC health checking protocol
 */
export async function probeGrpc(host: string, port: number, service: string, timeoutMs: number): Promise<ProbeOutcome> {
  const where = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const channel = new GrpcChannel(where, { userAgent: probeUserAgent });
  const request = service === "" ? Buffer.alloc(0) : Buffer.from(protobuf.Writer.create().uint32(10).string(service).finish());
  try {
    const status = readStatus(await channel.unary("/grpc.health.v1.Health/Check", request, timeoutMs));
    if (status === serving) return { result: "success", output: "service healthy" };
    return { result: "failure", output: `service unhealthy (responded with "${statusNames[status] ?? status}")` };
  } catch (err) {
    return { result: "failure", output: `service unhealthy (responded with "${asGrpcError(err).details}")` };
  } finally {
    channel.close();
  }
}

function readStatus(bytes: Buffer): number {
  const reader = protobuf.Reader.create(bytes);
  let status = 0;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 8) status = reader.int32();
    else reader.skipType(tag & 7);
  }
  return status;
}
