import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { type Backoff, newBackoff } from "../pods/backoff.ts";
import { newPluginChannel } from "./plugin-channel.ts";
import { type PluginInfo, registrationMessages, registrationService } from "./registration-schema.ts";

/** Who takes plugins of one type in. A throw refuses the plugin, which is told why. */
export interface PluginHandler {
  validate(name: string, endpoint: string, versions: readonly string[]): void | Promise<void>;
  register(name: string, endpoint: string, versions: readonly string[]): void | Promise<void>;
  deregister(name: string): void | Promise<void>;
}

export interface PluginRegistryOptions {
  /** `<root-dir>/plugins_registry`. */
  dir: string;
  /** By type. */
  handlers: Readonly<Record<string, PluginHandler>>;
  clock: Clock;
  log: Logger;
}

export interface PluginRegistry {
  /** Lets those plugins go whose sockets are not there, or are others; begins to take in those that are new. */
  reconcile(): Promise<void>;
}

interface Registered {
  /** Which file it was: a plugin that starts anew makes its socket anew. */
  identity: string;
  handler: PluginHandler;
  name: string;
}

const infoTimeoutMs = 1_000;
const statusTimeoutMs = 10_000;
const retryInitialMs = 500;
const retryMaxMs = 122_000;

/**
 * Plugins make a socket below one folder; each is asked what it is, taken in by its type's handler, and told the outcome.
 * Source: pkg/kubelet/pluginmanager
 */
export function newPluginRegistry({ dir, handlers, clock, log }: PluginRegistryOptions): PluginRegistry {
  const registered = new Map<string, Registered>();
  /** Being asked: a plugin that does not answer holds up nobody else. */
  const asked = new Set<string>();
  const retries: Backoff = newBackoff({ initialMs: retryInitialMs, maxMs: retryMaxMs, clock });

  async function letGo(handler: PluginHandler, name: string): Promise<void> {
    try {
      await handler.deregister(name);
    } catch (err) {
      log.error("Plugin cannot be let go", err, { plugin: name });
    }
  }

  async function register(socket: string): Promise<Omit<Registered, "identity">> {
    const channel = newPluginChannel(socket, registrationMessages);
    const tell = (pluginRegistered: boolean, error: string): Promise<unknown> =>
      channel.call(
        `${registrationService}/NotifyRegistrationStatus`,
        "RegistrationStatus",
        "RegistrationStatusResponse",
        { pluginRegistered, error },
        statusTimeoutMs,
      );
    const refuse = async (problem: string): Promise<never> => {
      const text = `RegisterPlugin error -- ${problem}`;
      await tell(false, text);
      throw new Error(text);
    };
    try {
      const { answer } = await channel.call(`${registrationService}/GetInfo`, "InfoRequest", "PluginInfo", {}, infoTimeoutMs);
      const { type, name, endpoint: own, supportedVersions } = answer as unknown as PluginInfo;
      const handler = Object.hasOwn(handlers, type) ? handlers[type] : undefined;
      if (handler === undefined) return await refuse(`no handler registered for plugin type: ${type} at socket ${socket}`);
      const endpoint = own || socket;
      try {
        await handler.validate(name, endpoint, supportedVersions);
      } catch (err) {
        return await refuse(`plugin validation failed with err: ${(err as Error).message}`);
      }
      try {
        await handler.register(name, endpoint, supportedVersions);
      } catch (err) {
        return await refuse(`plugin registration failed with err: ${(err as Error).message}`);
      }
      await tell(true, "").catch(async (err: Error) => {
        await letGo(handler, name); // nobody else would, should it never come back
        throw new Error(`RegisterPlugin error -- failed to send registration status at socket ${socket}, err: ${err.message}`);
      });
      log.info("Registered plugin", { plugin: name, type, socket });
      return { handler, name };
    } finally {
      channel.close();
    }
  }

  return {
    async reconcile() {
      await makeFolder(dir, 0o750);
      const present = await socketsBelow(dir);
      for (const [socket, { identity, handler, name }] of registered) {
        if (present.get(socket) === identity) continue;
        registered.delete(socket);
        log.info("Plugin has gone", { plugin: name, socket });
        await letGo(handler, name);
      }
      for (const [socket, identity] of present) {
        const key = `${socket} ${identity}`;
        if (registered.has(socket) || asked.has(socket) || retries.isWaiting(key)) continue;
        asked.add(socket);
        register(socket)
          .then((taken) => void registered.set(socket, { identity, ...taken }))
          .catch((err) => {
            retries.next(key);
            log.error("Plugin cannot be registered", err, { socket });
          })
          .finally(() => asked.delete(socket));
      }
      retries.collect();
    },
  };
}

/** Path → identity of every socket in the folder and those below it; hidden names are somebody else's. */
async function socketsBelow(dir: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    if (entry.name.startsWith(".")) continue;
    const path = join(dir, entry.name);
    if (entry.isDirectory()) for (const [socket, identity] of await socketsBelow(path)) found.set(socket, identity);
    if (!entry.isSocket()) continue;
    const info = await stat(path).catch(() => undefined); // it may be gone since
    if (info !== undefined) found.set(path, `${info.dev}/${info.ino}/${info.ctimeMs}`);
  }
  return found;
}
