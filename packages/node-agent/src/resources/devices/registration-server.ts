import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isExtendedResource } from "@coxswain/apimachinery/objects/validation/resource-names";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { serveGrpc } from "../../grpc-server.ts";
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
  const register = (bytes: Buffer): Buffer => {
    const request = pluginMessages.decode("RegisterRequest", bytes);
    const { version, endpoint, resourceName, options: own } = request;
    const problem = problemOf(version, resourceName, endpoint);
    log.info("Got registration request from device plugin with resource", { resourceName, endpoint });
    if (problem !== undefined) {
      const err = new Error(problem);
      log.error("refused a device plugin", err, { resourceName });
      throw err;
    }
    const wanted = own ?? { preStartRequired: false, getPreferredAllocationAvailable: false };
    onRegistered({ resource: resourceName, socket: join(dir, endpoint), options: wanted });
    return pluginMessages.encode("Empty", {});
  };
  return serveGrpc({ socket: join(dir, socketName), methods: { "/v1beta1.Registration/Register": register }, log });
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
