import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Server, ServerCredentials, type ServiceDefinition, status } from "@grpc/grpc-js";
import protobuf from "protobufjs";

/** A KMS plugin for tests: v1beta1 on a unix socket, with its own key. */
interface KmsPlugin {
  /** Method names in call order: `Version`, `Encrypt`, `Decrypt`. */
  readonly calls: string[];
  /** When set, all calls fail with this text. */
  refusal: string | undefined;
  stop(): Promise<void>;
}

interface KmsPluginOptions {
  readonly path: string;
  readonly key?: Buffer;
  readonly version?: string;
  /** Encoded fields that precede those of each answer. */
  readonly leading?: Buffer;
}

/** Listens on the unix socket `path`. @param options.version what it reports as its version */
export async function startKmsPlugin({
  path,
  key,
  version = "v1beta1",
  leading = Buffer.alloc(0),
}: KmsPluginOptions): Promise<KmsPlugin> {
  const secret = key ?? randomBytes(32);
  const answers: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
    Version: () => Buffer.from(version),
    Encrypt(plain) {
      const iv = randomBytes(16);
      const cipher = createCipheriv("aes-256-ctr", secret, iv);
      return Buffer.concat([iv, cipher.update(plain), cipher.final()]);
    },
    Decrypt(sealed) {
      const decipher = createDecipheriv("aes-256-ctr", secret, sealed.subarray(0, 16));
      return Buffer.concat([decipher.update(sealed.subarray(16)), decipher.final()]);
    },
  };
  const plugin = { calls: [] as string[], refusal: undefined as string | undefined };
  const server = new Server();
  const methods: Record<string, ServiceDefinition[string]> = {};
  const handlers: Record<string, (call: { request: Buffer }, answer: (err: object | null, value?: Buffer) => void) => void> = {};
  for (const [name, run] of Object.entries(answers)) {
    methods[name] = {
      path: `/v1beta1.KeyManagementService/${name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (bytes: Buffer) => bytes,
      requestDeserialize: secondField,
      responseSerialize: (bytes: Buffer) => Buffer.concat([leading, protobuf.Writer.create().uint32(10).bytes(bytes).finish()]),
      responseDeserialize: (bytes: Buffer) => bytes,
    };
    handlers[name] = ({ request }, answer) => {
      plugin.calls.push(name);
      if (plugin.refusal !== undefined) answer({ code: status.PERMISSION_DENIED, details: plugin.refusal });
      else answer(null, run(request));
    };
  }
  server.addService(methods, handlers);
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (err) => (err ? reject(err) : resolve()));
  });
  return Object.assign(plugin, {
    async stop() {
      server.forceShutdown();
    },
  });
}

function secondField(bytes: Buffer): Buffer {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 18) return Buffer.from(reader.bytes());
    reader.skipType(tag & 7);
  }
  return Buffer.alloc(0);
}
