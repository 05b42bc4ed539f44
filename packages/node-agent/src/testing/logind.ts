import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isNotListening, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { connectToBus, type DbusConnection } from "../dbus/connection.ts";

const logindProgram = "/lib/systemd/systemd-logind";
const busProgram = "/usr/bin/dbus-daemon";
/** The reason to skip tests with a real logind: they need root for namespaces, and systemd's binaries. */
export const whyNoLogind: string | undefined =
  process.getuid?.() !== 0
    ? "needs root"
    : [logindProgram, busProgram, "/usr/bin/systemd-inhibit"]
        .filter((path) => !existsSync(path))
        .map((path) => `needs ${path}`)
        .at(0);

const busConfig = (socket: string): string => `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=${socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>`;

interface PlayedMachine {
  /** Address of the bus. */
  address: string;
  /** Directory of logind's configuration drop-ins. */
  configDir: string;
  /** Units that logind started through the fake systemd. */
  units: string[];
  powerOff(): Promise<unknown>;
  /** From now on the fake systemd refuses to send logind a signal. */
  refuseReload(): void;
  /** Active inhibitors: what, who, why, mode, UID, PID. */
  inhibitors(): Promise<string[][]>;
}

/** A private bus with a real logind that is isolated from the machine's state. */
export async function startLogind(t: { after(fn: () => Promise<void>): void }): Promise<PlayedMachine> {
  const dir = await mkdtemp(join(tmpdir(), "cox-logind-"));
  const children: ChildProcess[] = [];
  const run = (program: string, args: string[], env: Record<string, string> = {}): ChildProcess => {
    const child = spawn(program, args, { stdio: "ignore", env: { ...process.env, ...env } });
    children.push(child);
    return child;
  };
  let bus: DbusConnection | undefined;
  t.after(async () => {
    bus?.close();
    for (const child of children.reverse()) {
      if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await once(child, "exit");
    }
    await rm(dir, { recursive: true, force: true });
  });
  const socket = join(dir, "bus");
  await writeFile(join(dir, "bus.conf"), busConfig(socket));
  run(busProgram, [`--config-file=${join(dir, "bus.conf")}`, "--nofork", "--nopidfile"]);
  const address = `unix:path=${socket}`;
  // The socket file exists before dbus-daemon listens.
  const connected = await waitFor(() => connectToBus(address), { what: "the bus", retry: isNotListening });
  bus = connected;
  const configDir = join(dir, "systemd/logind.conf.d");
  await mkdir(configDir, { recursive: true });
  const script = `mount -t tmpfs tmpfs /run && mkdir -p /run/systemd && mount --bind ${join(dir, "systemd")} /etc/systemd && exec ${logindProgram}`;
  const logind = run("unshare", ["-m", "sh", "-c", script], { DBUS_SYSTEM_BUS_ADDRESS: address });

  // A fake systemd: logind's clients reload it through systemd, and logind starts the shutdown unit there.
  const units: string[] = [];
  let refusesReload = false;
  connected.answer(({ member, body }) => {
    if (member === "Get") return { signature: "v", body: [{ type: "s", value: "loaded" }] }; // properties of the unit to start
    if (member === "KillUnit" && !refusesReload && body.slice(0, 2).join() === "systemd-logind.service,all") {
      process.kill(logind.pid as number, Number(body[2]));
      return { signature: "", body: [] };
    }
    if (member !== "StartUnit") return undefined;
    units.push(String(body[0]));
    return { signature: "o", body: ["/org/freedesktop/systemd1/job/1"] };
  });
  const own = { destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus" };
  await connected.call({ ...own, member: "RequestName", signature: "su", body: ["org.freedesktop.systemd1", 0] });
  await waitFor(
    async () => {
      const [names] = await connected.call({ ...own, member: "ListNames" });
      return (names as string[]).includes("org.freedesktop.login1");
    },
    { what: "logind to be on the bus" },
  );
  const manager = {
    destination: "org.freedesktop.login1",
    path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
  };
  return {
    address,
    configDir,
    units,
    refuseReload: () => {
      refusesReload = true;
    },
    powerOff: () => connected.call({ ...manager, member: "PowerOff", signature: "b", body: [false] }),
    async inhibitors() {
      const [locks] = await connected.call({ ...manager, member: "ListInhibitors" });
      return locks as string[][];
    },
  };
}
