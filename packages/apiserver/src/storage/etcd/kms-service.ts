import { grpcCodeNames } from "@coxswain/apimachinery/errors/grpc-codes";
import type { Client, Metadata, ServiceError } from "@grpc/grpc-js";
import protobuf from "protobufjs/minimal.js";
import { KeyOutOfReach } from "./transformer.ts";

/** A key management service, which holds the key that data keys are encrypted with. */
export interface KmsService {
  /** @throws Error with a gRPC status text when the plugin refuses or does not answer in time */
  encrypt(plain: Buffer): Promise<Buffer>;
  decrypt(cipher: Buffer): Promise<Buffer>;
}

/** The plugin refused or did not answer; the message has the form of a gRPC status. */
export class KmsError extends KeyOutOfReach {
  /** gRPC code name: `PermissionDenied`. */
  readonly code: string;

  constructor(code: string, details: string) {
    super(`rpc error: code = ${code} desc = ${details}`);
    this.code = code;
  }
}

const apiVersion = "v1beta1";

/**
 * Client of a KMS plugin on a unix socket: gRPC v1beta1 KeyManagementService. The plugin may start later than this process
 * and restart at any time: calls wait for it until their deadline. Its version is checked once, on the first call.
 * @param endpoint `unix:///var/run/kms.sock`; `unix:///@name` is an abstract socket
 * @throws Error when the endpoint is invalid
 * Source: k8s.io/apiserver pkg/storage/value/encrypt/envelope/grpc_service.go, v1beta1/service.proto
 */
export function newKmsService(endpoint: string, timeoutMs: number): KmsService {
  const target = targetOf(endpoint);
  let channel: Promise<Channel> | undefined;
  let isVersionChecked = false;

  async function call(method: string, request: Buffer, deadline: number): Promise<Buffer> {
    channel ??= openChannel(target);
    const { client, metadata } = await channel;
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        `/v1beta1.KeyManagementService/${method}`,
        (bytes: Buffer) => bytes,
        firstField,
        request,
        metadata,
        { deadline },
        (err: ServiceError | null, answer: Buffer | undefined) => {
          if (err === null) resolve(answer ?? Buffer.alloc(0));
          else reject(new KmsError(grpcCodeNames[err.code] ?? String(err.code), err.details));
        },
      );
    });
  }

  async function checkVersion(deadline: number): Promise<void> {
    if (isVersionChecked) return;
    const answer = await call("Version", message(), deadline).catch((err: Error) => {
      throw new Error(`failed get version from remote KMS provider: ${err.message}`, { cause: err });
    });
    const version = answer.toString();
    if (version !== apiVersion) {
      throw new KeyOutOfReach(`KMS provider api version ${version} is not supported, only ${apiVersion} is supported now`);
    }
    isVersionChecked = true;
  }

  async function transform(method: "Encrypt" | "Decrypt", bytes: Buffer): Promise<Buffer> {
    const deadline = Date.now() + timeoutMs;
    await checkVersion(deadline);
    return call(method, message(bytes), deadline);
  }

  return {
    encrypt: (plain) => transform("Encrypt", plain),
    decrypt: (cipher) => transform("Decrypt", cipher),
  };
}

interface Channel {
  readonly client: Client;
  readonly metadata: Metadata;
}

/** Imports grpc-js on the first call, since most servers have no KMS. */
async function openChannel(target: string): Promise<Channel> {
  const grpc = await import("@grpc/grpc-js");
  const client = new grpc.Client(target, grpc.credentials.createInsecure(), {
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
    "grpc.default_authority": "localhost",
  });
  return { client, metadata: new grpc.Metadata({ waitForReady: true }) };
}

function targetOf(endpoint: string): string {
  if (endpoint === "") throw new Error("remote KMS provider can't use empty string as endpoint");
  const { protocol, pathname } = new URL(endpoint);
  if (protocol !== "unix:")
    throw new Error(`unsupported scheme ${JSON.stringify(protocol.slice(0, -1))} for remote KMS provider`);
  return pathname.startsWith("/@") ? `unix-abstract:${pathname.slice(2)}` : `unix:${pathname}`;
}

/** Encodes any of the three requests: field 1 is the API version, field 2 the bytes. */
function message(bytes?: Buffer): Buffer {
  const writer = protobuf.Writer.create().uint32(10).string(apiVersion);
  if (bytes !== undefined) writer.uint32(18).bytes(bytes);
  return Buffer.from(writer.finish());
}

/** The relevant field of all three responses is field 1. */
function firstField(bytes: Buffer): Buffer {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 10) return Buffer.from(reader.bytes());
    reader.skipType(tag & 7);
  }
  return Buffer.alloc(0);
}
