import { grpcCodeNames } from "@coxswain/apimachinery/objects/errors/grpc-codes";
import { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";
import { asGrpcError } from "@coxswain/apimachinery/transport/grpc/grpc-error";
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
  const channel = new GrpcChannel(targetOf(endpoint), { longestBackoffMs: 1_000 });
  let isVersionChecked = false;

  /** @param deadline of `performance.now()` */
  async function call(method: string, request: Buffer, deadline: number): Promise<Buffer> {
    const leftMs = Math.max(1, Math.ceil(deadline - performance.now()));
    try {
      return firstField(await channel.unaryWhenReady(`/v1beta1.KeyManagementService/${method}`, request, leftMs));
    } catch (err) {
      const { code, details } = asGrpcError(err);
      throw new KmsError(grpcCodeNames[code] ?? String(code), details);
    }
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
    const deadline = performance.now() + timeoutMs;
    await checkVersion(deadline);
    return call(method, message(bytes), deadline);
  }

  return {
    encrypt: (plain) => transform("Encrypt", plain),
    decrypt: (cipher) => transform("Decrypt", cipher),
  };
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
