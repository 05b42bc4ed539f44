import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isExtendedResource } from "@coxswain/apimachinery/objects/validation/resource-names";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { type PluginOptions, pluginMessages } from "./plugin-schema.ts";

/** A successful registration request. */
export interface Registered {
  resource: string;
  /** Path of the plugin's socket. */
  socket: string;
  options: PluginOptions;
}

export const supportedVersions: readonly string[] = ["v1beta1"];
const socketName = "kubelet.sock";

/**
 * Serves the registration socket of device plugins, `<root-dir>/device-plugins/kubelet.sock`. Other files in the directory
 * are removed first: plugins watch their own socket and register again when it is deleted.
 * @param keep name of a file that is not removed (the checkpoint)
 * @throws Error when the socket cannot be served
 * Source: pkg/kubelet/cm/devicemanager/manager.go Start, Register
 */
export async function serveRegistration(options: {
  dir: string;
  keep: string;
  onRegistered: (plugin: Registered) => void;
  log: Logger;
}): Promise<{ close(): void }> {
  const { dir, keep, onRegistered, log } = options;
  await makeFolder(dir, 0o750);
  for (const name of await readdir(dir)) {
    const path = join(dir, name);
    if (name !== keep && !(await stat(path).catch(() => undefined))?.isDirectory()) await rm(path, { force: true });
  }
  const server = new Server();
  server.addService(
    {
      Register: {
        path: "/v1beta1.Registration/Register",
        requestStream: false,
        responseStream: false,
        requestSerialize: (message: object) => pluginMessages.encode("RegisterRequest", message),
        requestDeserialize: (bytes: Buffer) => pluginMessages.decode("RegisterRequest", bytes),
        responseSerialize: (message: object) => pluginMessages.encode("Empty", message),
        responseDeserialize: (bytes: Buffer) => pluginMessages.decode("Empty", bytes),
      },
    },
    {
      Register({ request }: ServerUnaryCall<Record<string, unknown>, object>, answer: sendUnaryData<object>) {
        const { version, endpoint, resourceName, options: own } = request as Record<string, string> & { options: unknown };
        const problem = problemOf(version ?? "", resourceName ?? "", endpoint ?? "");
        log.info("Got registration request from device plugin with resource", { resourceName, endpoint });
        if (problem !== undefined) {
          log.error("a device plugin is refused", new Error(problem), { resourceName });
          return answer({ code: status.UNKNOWN, details: problem });
        }
        answer(null, {});
        const wanted = (own ?? { preStartRequired: false, getPreferredAllocationAvailable: false }) as PluginOptions;
        onRegistered({ resource: resourceName as string, socket: join(dir, endpoint as string), options: wanted });
      },
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${join(dir, socketName)}`, ServerCredentials.createInsecure(), (err) =>
      err === null ? resolve() : reject(err),
    );
  });
  return { close: () => server.forceShutdown() };
}

function problemOf(version: string, resource: string, endpoint: string): string | undefined {
  if (!supportedVersions.includes(version)) {
    return `requested API version ${JSON.stringify(version)} is not supported by kubelet. Supported version is [${supportedVersions.map((one) => JSON.stringify(one)).join(" ")}]`;
  }
  if (!isExtendedResource(resource)) return `the ResourceName ${JSON.stringify(resource)} is invalid`;
  // The endpoint is a file name in the directory and must not point outside of it.
  if (endpoint === "" || endpoint.includes("/") || endpoint === "." || endpoint === "..")
    return `the endpoint ${JSON.stringify(endpoint)} is invalid`;
  return undefined;
}
