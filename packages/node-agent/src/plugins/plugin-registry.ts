import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { type Backoff, newBackoff } from "../pod/backoff.ts";
import { newPluginChannel } from "./plugin-channel.ts";
import { registrationMessages, registrationService } from "./registration-schema.ts";

/** Handles the plugins of one type. Errors reject the registration and are reported to the plugin. */
export interface PluginHandler {
  validate(name: string, endpoint: string, versions: readonly string[]): void | Promise<void>;
  register(name: string, endpoint: string, versions: readonly string[]): void | Promise<void>;
  deregister(name: string): void | Promise<void>;
}

export interface PluginRegistryOptions {
  /** `<root-dir>/plugins_registry`. */
  dir: string;
  /** Handlers by plugin type. */
  handlers: Readonly<Record<string, PluginHandler>>;
  clock: Clock;
  log: Logger;
}

interface Registered {
  /** Device, inode and ctime of the socket: a restarted plugin creates a new one. */
  identity: string;
  handler: PluginHandler;
  name: string;
}

const infoTimeoutMs = 1_000;
const statusTimeoutMs = 10_000;
const retryInitialMs = 500;
const retryMaxMs = 122_000;

/**
 * The registered plugins of the node. Discovers them by their sockets in a directory: queries each for its type, passes it to
 * the handler, and reports the result to the plugin. Source: pkg/kubelet/pluginmanager
 */
export class PluginRegistry {
  readonly #options: PluginRegistryOptions;
  readonly #registered = new Map<string, Registered>();
  /** Sockets with a registration in progress: an unresponsive plugin does not delay others. */
  readonly #requested = new Set<string>();
  readonly #retries: Backoff;
  #seen: readonly string[] = [];

  constructor(options: PluginRegistryOptions) {
    this.#options = options;
    const { clock } = options;
    this.#retries = newBackoff({ initialMs: retryInitialMs, maxMs: retryMaxMs, clock });
  }

  /** Deregisters plugins whose socket was removed or replaced, and starts to register new ones. */
  async reconcile(): Promise<void> {
    const { dir, log } = this.#options;
    let present: Map<string, string>;
    try {
      present = socketsBelow(dir);
    } catch (err) {
      if (errorCode(err) !== "ENOENT") throw err;
      await makeFolder(dir, 0o750);
      present = new Map();
    }
    this.#seen = [...present.keys()];
    for (const [socket, { identity, handler, name }] of this.#registered) {
      if (present.get(socket) === identity) continue;
      this.#registered.delete(socket);
      log.info("Plugin was removed", { plugin: name, socket });
      await this.#deregister(handler, name);
    }
    for (const [socket, identity] of present) {
      const key = `${socket} ${identity}`;
      if (this.#registered.has(socket) || this.#requested.has(socket) || this.#retries.isWaiting(key)) continue;
      this.#requested.add(socket);
      this.#register(socket)
        .then((taken) => void this.#registered.set(socket, { identity, ...taken }))
        .catch((err) => {
          this.#retries.next(key);
          log.error("Plugin cannot be registered", err, { socket });
        })
        .finally(() => this.#requested.delete(socket));
    }
    this.#retries.collect();
  }

  /** Paths of the sockets found by the last `reconcile`, and of those whose plugins are registered. */
  sockets(): { present: readonly string[]; registered: readonly string[] } {
    return { present: this.#seen, registered: [...this.#registered.keys()] };
  }

  /** A failure is logged, not thrown. */
  async #deregister(handler: PluginHandler, name: string): Promise<void> {
    const { log } = this.#options;
    try {
      await handler.deregister(name);
    } catch (err) {
      log.error("Plugin cannot be deregistered", err, { plugin: name });
    }
  }

  async #register(socket: string): Promise<Omit<Registered, "identity">> {
    const { handlers, log } = this.#options;
    const channel = newPluginChannel(socket, registrationMessages);
    const notify = (pluginRegistered: boolean, error: string): Promise<unknown> =>
      channel.call(
        `${registrationService}/NotifyRegistrationStatus`,
        "RegistrationStatus",
        "RegistrationStatusResponse",
        { pluginRegistered, error },
        statusTimeoutMs,
      );
    const refuse = async (problem: string): Promise<never> => {
      const text = `RegisterPlugin error -- ${problem}`;
      await notify(false, text);
      throw new Error(text);
    };
    try {
      const { answer } = await channel.call(`${registrationService}/GetInfo`, "InfoRequest", "PluginInfo", {}, infoTimeoutMs);
      const { type, name, endpoint: own, supportedVersions } = answer;
      const handler = Object.hasOwn(handlers, type) ? handlers[type] : undefined;
      if (handler === undefined) return await refuse(`no handler registered for plugin type: ${type} at socket ${socket}`);
      const endpoint = own || socket;
      try {
        await handler.validate(name, endpoint, supportedVersions);
      } catch (err) {
        return await refuse(`plugin validation failed with err: ${messageOf(err)}`);
      }
      try {
        await handler.register(name, endpoint, supportedVersions);
      } catch (err) {
        return await refuse(`plugin registration failed with err: ${messageOf(err)}`);
      }
      await notify(true, "").catch(async (err: Error) => {
        await this.#deregister(handler, name); // the plugin may never retry, so undo the registration
        throw new Error(`RegisterPlugin error -- failed to send registration status at socket ${socket}, err: ${err.message}`);
      });
      log.info("Registered plugin", { plugin: name, type, socket });
      return { handler, name };
    } finally {
      channel.close();
    }
  }
}

/** Path → identity of all sockets in the directory tree; hidden files are ignored. */
function socketsBelow(dir: string): Map<string, string> {
  const found = new Map<string, string>();
  // Synchronous, because it runs each second: the kernel has a small directory in memory, and a trip to another thread costs more.
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.name.startsWith(".")) continue;
    const path = join(dir, entry.name);
    if (entry.isDirectory()) for (const [socket, identity] of socketsBelow(path)) found.set(socket, identity);
    if (!entry.isSocket()) continue;
    const info = statSync(path, { throwIfNoEntry: false }); // it may have been removed
    if (info !== undefined) found.set(path, `${info.dev}/${info.ino}/${info.ctimeMs}`);
  }
  return found;
}
