import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { PluginHandler } from "../../plugins/plugin-registry.ts";
import { CsiClient, type OnCsiCall } from "./csi-client.ts";

/** Publishes a driver's registration on the Node and CSINode objects. */
export interface DriverAnnouncer {
  install(driver: string, info: Awaited<ReturnType<CsiClient["info"]>>): Promise<void>;
  uninstall(driver: string): Promise<void>;
}

export interface CsiDrivers extends PluginHandler {
  /** @throws Error when the driver is not registered */
  client(driver: string): CsiClient;
  has(driver: string): boolean;
  close(): void;
}

interface Driver {
  client: CsiClient;
  version: readonly number[];
}

/** CSI drivers registered with this kubelet. Source: pkg/volume/csi/csi_plugin.go RegistrationHandler */
export function newCsiDrivers(options: { announcer: DriverAnnouncer; onCall?: OnCsiCall }): CsiDrivers {
  const drivers = new Map<string, Driver>();

  function acceptedVersion(caller: string, driver: string, versions: readonly string[]): readonly number[] {
    const failed = `kubernetes.io/csi: ${caller} for CSI driver ${JSON.stringify(driver)} failed.`;
    if (versions.length === 0) throw new Error(`${failed} Plugin returned an empty list for supported versions`);
    const shown = `[${versions.map((version) => JSON.stringify(version)).join(" ")}]`;
    let version: readonly number[];
    try {
      version = highestVersion(versions);
    } catch (err) {
      throw new Error(`${failed} None of the versions specified ${shown} are supported. err=${messageOf(err)}`);
    }
    const existing = drivers.get(driver);
    if (existing !== undefined && compareVersions(existing.version, version) >= 0) {
      const text = `Another driver with the same name is already registered with a higher supported version: "${existing.version.join(".")}"`;
      throw new Error(`${failed} ${text}`);
    }
    return version;
  }

  async function forget(driver: string): Promise<void> {
    drivers.get(driver)?.client.close();
    drivers.delete(driver);
    await options.announcer.uninstall(driver);
  }

  return {
    validate(name, endpoint, versions) {
      try {
        acceptedVersion("ValidatePlugin", name, versions);
      } catch (err) {
        throw new Error(`validation failed for CSI Driver ${name} at endpoint ${endpoint}: ${messageOf(err)}`);
      }
    },
    async register(name, endpoint, versions) {
      const version = acceptedVersion("RegisterPlugin", name, versions);
      const client = new CsiClient(name, endpoint, options.onCall);
      drivers.get(name)?.client.close();
      drivers.set(name, { client, version });
      try {
        await options.announcer.install(name, await client.info());
      } catch (err) {
        await forget(name).catch(() => undefined); // report the original error
        throw err;
      }
    },
    deregister: forget,
    client(driver) {
      const found = drivers.get(driver);
      if (found === undefined) throw new Error(`driver name ${driver} not found in the list of registered CSI drivers`);
      return found.client;
    },
    has: (driver) => drivers.has(driver),
    close() {
      for (const { client } of drivers.values()) client.close();
    },
  };
}

/** @throws Error when no listed version is a v1.x */
function highestVersion(versions: readonly string[]): readonly number[] {
  const known = versions.flatMap((text) => [parseVersion(text) ?? []]).filter(([major]) => major !== undefined && major <= 1);
  const highest = known.toSorted(compareVersions).at(-1);
  if (highest === undefined) {
    const listed = `[${versions.join(" ")}]`;
    throw new Error(`could not find a highest supported version from versions (${listed}) reported by this driver: <nil>`);
  }
  if (highest[0] !== 1) throw new Error(`highest supported version reported by driver is ${highest.join(".")}, must be v1.x`);
  return highest;
}

function parseVersion(text: string): readonly number[] | undefined {
  const digits = /^v?(\d+(?:\.\d+)*)/.exec(text.trim())?.[1];
  return digits?.split(".").map(Number);
}

function compareVersions(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
