import { createServer, type Socket } from "node:net";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { grpcCodes } from "@coxswain/apimachinery/transport/grpc/grpc-error";
import type { Server, sendUnaryData } from "@grpc/grpc-js";

/** Handles a unary call: encoded request to encoded response. An error becomes status Unknown, as with Go's library. */
export type UnaryHandler = (request: Buffer) => Buffer;

interface GrpcServerOptions {
  /** Path of the unix socket; must not exist yet. */
  readonly socket: string;
  /** Handlers by path: `/<package>.<service>/<method>`. */
  readonly methods: Readonly<Record<string, UnaryHandler>>;
  readonly log: Logger;
}

/**
 * Serves gRPC on a unix socket. The gRPC library takes 21 MB and is loaded with the first connection: most kubelets never
 * get one.
 * @throws Error when the socket cannot be served
 */
export async function serveGrpc({ socket, methods, log }: GrpcServerOptions): Promise<{ close(): void }> {
  let library: Promise<GrpcConnections> | undefined;
  // Paused: the library reads from the socket's handle and must find the first byte there.
  const listener = createServer({ pauseOnConnect: true }, (connection) => {
    connection.on("error", () => connection.destroy());
    library ??= openLibrary(methods);
    library.then(
      (opened) => opened.serve(connection),
      (err) => {
        library = undefined;
        log.error("A gRPC connection cannot be served", err, { socket });
        connection.destroy();
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(socket, resolve);
  });
  return {
    close() {
      listener.close();
      library?.then(
        (opened) => opened.close(),
        () => {},
      );
    },
  };
}

interface GrpcConnections {
  serve(connection: Socket): void;
  close(): void;
}

async function openLibrary(methods: GrpcServerOptions["methods"]): Promise<GrpcConnections> {
  const { Server, ServerCredentials } = await import("@grpc/grpc-js");
  const server = new Server();
  for (const [path, handler] of Object.entries(methods)) addMethod(server, path, handler);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  return {
    serve(connection) {
      injector.injectConnection(connection);
      connection.resume();
    },
    close() {
      injector.destroy();
      server.forceShutdown();
    },
  };
}

const same = (bytes: Buffer): Buffer => bytes;

function addMethod(server: Server, path: string, handler: UnaryHandler): void {
  const definition = {
    path,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  const handle = ({ request }: { request: Buffer }, respond: sendUnaryData<Buffer>): void => {
    try {
      respond(null, handler(request));
    } catch (err) {
      respond({ code: grpcCodes.unknown, details: err instanceof Error ? err.message : String(err) });
    }
  };
  server.addService({ Method: definition }, { Method: handle });
}
