import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { type ProbeOutcome, probeUserAgent } from "./http.ts";

const serving = 1;
const statusNames = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/**
 * Succeeds when `grpc.health.v1.Health/Check` returns SERVING.
 * Source: pkg/probe/grpc/grpc.go, gRPC health checking protocol
 */
export function probeGrpc(host: string, port: number, service: string, timeoutMs: number): Promise<ProbeOutcome> {
  const where = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const client = new Client(where, credentials.createInsecure(), { "grpc.primary_user_agent": probeUserAgent });
  return new Promise((resolve) => {
    const finish = (outcome: ProbeOutcome): void => {
      client.close();
      resolve(outcome);
    };
    client.makeUnaryRequest(
      "/grpc.health.v1.Health/Check",
      (name: string) => Buffer.from(name === "" ? [] : protobuf.Writer.create().uint32(10).string(name).finish()),
      readStatus,
      service,
      new Metadata(),
      { deadline: Date.now() + timeoutMs },
      (err: ServiceError | null, status: number | undefined) => {
        if (err !== null) finish({ result: "failure", output: `service unhealthy (responded with "${err.details}")` });
        else if (status === serving) finish({ result: "success", output: "service healthy" });
        else finish({ result: "failure", output: `service unhealthy (responded with "${statusNames[status ?? 0] ?? status}")` });
      },
    );
  });
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
