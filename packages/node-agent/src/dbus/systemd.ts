import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { connectToBus, connectToPeer, DbusClosed, type DbusConnection, DbusError } from "./connection.ts";
import type { DbusValue, Variant } from "./message.ts";

/** A unit property: `["CPUShares", { type: "t", value: 1024n }]`. */
export type UnitProperty = readonly [name: string, value: Variant];

interface SystemdOptions {
  clock: Clock;
  /** @throws Error when systemd is currently unreachable */
  connect?: () => Promise<DbusConnection>;
}

interface Link {
  bus: DbusConnection;
  /** Results of jobs that finished before their job path was known to the caller. */
  ended: Map<string, string>;
  waiting: Map<string, (result: string) => void>;
}

const service = "org.freedesktop.systemd1";
const object = "/org/freedesktop/systemd1";
const manager = `${service}.Manager`;
const privateSocket = "unix:path=/run/systemd/private";
const jobTimeoutMs = 30_000;
/** Covers a re-execution of systemd (`daemon-reexec`), which takes less than a second. */
const retriesMs = [50, 200, 500, 1_000, 2_000];
const mostEnded = 1_000;

/**
 * The calls of the systemd manager that Pod cgroups need. Connects through the system bus, or through
 * systemd's private socket where there is no bus; reconnects after a lost connection.
 * Source: runc libcontainer/cgroups/systemd/common.go, dbus.go
 */
export class Systemd {
  readonly #options: SystemdOptions;
  readonly #connect: () => Promise<DbusConnection>;
  #link: Promise<Link> | undefined;
  #closed = false;

  constructor(options: SystemdOptions) {
    this.#options = options;
    const { connect = connectToSystemd } = options;
    this.#connect = connect;
  }

  /** Creates and starts a transient unit; an existing unit is left unchanged. @throws Error when the unit does not start */
  async startTransientUnit(unit: string, properties: readonly UnitProperty[]): Promise<void> {
    let result: string | undefined;
    try {
      result = await this.#run("StartTransientUnit", "ssa(sv)a(sa(sv))", [unit, "replace", properties, []]);
    } catch (err) {
      if (isDbusError(err, `${service}.UnitExists`)) return;
      throw err;
    }
    if (result === "done") return;
    // A failed unit stays loaded until it is reset.
    await this.#withLink(({ bus }) => call(bus, "ResetFailedUnit", "s", [unit])).catch(() => undefined);
    if (result === undefined) throw new Error(`Timeout waiting for systemd to create ${unit}`);
    throw new Error(`error creating systemd unit \`${unit}\`: got \`${result}\``);
  }

  /** Sets runtime properties, which last until the next boot. */
  async setUnitProperties(unit: string, properties: readonly UnitProperty[]): Promise<void> {
    await this.#withLink(({ bus }) => call(bus, "SetUnitProperties", "sba(sv)", [unit, true, properties]));
  }

  /** Stops a unit and the units that depend on it. @throws Error after 30 seconds */
  async stopUnit(unit: string): Promise<void> {
    try {
      const result = await this.#run("StopUnit", "ss", [unit, "replace"]);
      if (result === undefined) throw new Error(`Timed out while waiting for systemd to remove ${unit}`);
    } catch (err) {
      if (!isDbusError(err, `${service}.NoSuchUnit`)) throw err;
    }
  }

  close(): void {
    this.#closed = true;
    void this.#link?.then(({ bus }) => bus.close()).catch(() => undefined);
  }

  /** Repeats the call after a lost connection: callers must use idempotent calls only. */
  async #withLink<T>(work: (link: Link) => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await work(await this.#opened());
      } catch (err) {
        const waitMs = retriesMs[attempt];
        if (!isAway(err) || waitMs === undefined || this.#closed) throw err;
        await clock.sleep(waitMs);
      }
    }
  }

  #opened(): Promise<Link> {
    if (this.#closed) return Promise.reject(new SystemdAway("systemd is no longer queried"));
    this.#link ??= this.#openLink().catch((err: Error) => {
      this.#link = undefined;
      throw new SystemdAway(`systemd cannot be reached: ${err.message}`);
    });
    return this.#link;
  }

  async #openLink(): Promise<Link> {
    const bus = await this.#connect();
    const opening: Link = { bus, ended: new Map(), waiting: new Map() };
    void bus.closed.then(() => {
      this.#link = undefined;
      for (const resolve of opening.waiting.values()) resolve("");
    });
    const jobRemoved = { path: object, interface: manager, member: "JobRemoved" };
    const listening = bus.onSignal(jobRemoved, ([, job, , result]) => {
      const heard = opening.waiting.get(String(job));
      if (heard !== undefined) heard(String(result));
      else remember(opening.ended, String(job), String(result));
    });
    await listening.catch((err: Error) => {
      bus.close();
      throw err;
    });
    return opening;
  }

  /** @returns the job's result: `done`, `failed`, …; undefined on timeout */
  async #run(member: string, signature: string, body: readonly DbusValue[]): Promise<string | undefined> {
    return this.#withLink(async (current) => {
      const [job] = await call(current.bus, member, signature, body);
      const result = await this.#jobResult(current, String(job));
      if (result === "") throw new DbusClosed("systemd went away");
      return result;
    });
  }

  #jobResult({ ended, waiting }: Link, job: string): Promise<string | undefined> {
    const { clock } = this.#options;
    const early = ended.get(job);
    ended.delete(job);
    if (early !== undefined) return Promise.resolve(early);
    return new Promise((resolve) => {
      const settle = (result: string | undefined): void => {
        timer.cancel();
        waiting.delete(job);
        resolve(result);
      };
      const timer = clock.after(jobTimeoutMs, () => settle(undefined));
      waiting.set(job, settle);
    });
  }
}

const call = (bus: DbusConnection, member: string, signature: string, body: readonly DbusValue[]) =>
  bus.call({ destination: service, path: object, interface: manager, member, signature, body });

class SystemdAway extends Error {}

const isDbusError = (err: unknown, name: string): boolean => err instanceof DbusError && err.errorName === name;

/** Errors of the bus when the service has disconnected or is not available yet. */
const awayErrors = ["NoReply", "ServiceUnknown", "NameHasNoOwner", "Disconnected"].map(
  (name) => `org.freedesktop.DBus.Error.${name}`,
);

function isAway(err: unknown): boolean {
  if (err instanceof SystemdAway || err instanceof DbusClosed) return true;
  return err instanceof DbusError && awayErrors.includes(err.errorName);
}

/** Jobs of other clients are reported, too: keep only the most recent results. */
function remember(ended: Map<string, string>, job: string, result: string): void {
  ended.set(job, result);
  if (ended.size > mostEnded) for (const oldest of ended.keys()) return void ended.delete(oldest);
}

async function connectToSystemd(): Promise<DbusConnection> {
  try {
    return await connectToBus();
  } catch (err) {
    if (process.geteuid?.() !== 0) throw err;
    return connectToPeer(privateSocket);
  }
}
