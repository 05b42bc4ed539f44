import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { connectToBus, type DbusConnection } from "../dbus/connection.ts";
import { connectToLogind } from "./logind.ts";

const logindProgram = "/lib/systemd/systemd-logind";
const busProgram = "/usr/bin/dbus-daemon";
const canRun =
  process.getuid?.() === 0 && [logindProgram, busProgram, "/usr/bin/systemd-inhibit"].every((path) => existsSync(path));

const busConfig = (socket: string): string => `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=${socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>`;

/** A bus of the test's with a real logind on it, which sees nothing of the machine's own state. */
async function startLogind(
  t: TestContext,
): Promise<{ address: string; configDir: string; bus: DbusConnection; units: string[] }> {
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
  await waitFor(() => existsSync(socket), { what: "the bus" });
  const address = `unix:path=${socket}`;
  const configDir = join(dir, "systemd/logind.conf.d");
  await mkdir(configDir, { recursive: true });
  const script = `mount -t tmpfs tmpfs /run && mkdir -p /run/systemd && mount --bind ${join(dir, "systemd")} /etc/systemd && exec ${logindProgram}`;
  const logind = run("unshare", ["-m", "sh", "-c", script], { DBUS_SYSTEM_BUS_ADDRESS: address });

  // systemd itself is played: it is asked to reload logind, and to start the unit that ends the machine.
  const units: string[] = [];
  const connected = await connectToBus(address);
  bus = connected;
  connected.answer(({ member, body }) => {
    if (member === "Get") return { signature: "v", body: [{ type: "s", value: "loaded" }] }; // of the unit it will start
    if (member === "KillUnit") {
      process.kill(logind.pid as number, "SIGHUP");
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
  return { address, configDir, bus: connected, units };
}

const manager = {
  destination: "org.freedesktop.login1",
  path: "/org/freedesktop/login1",
  interface: "org.freedesktop.login1.Manager",
};

test("a real logind waits for the lock, as long as it was told, before the machine goes down", { skip: !canRun }, async (t) => {
  const { address, configDir, bus, units } = await startLogind(t);
  const logind = await connectToLogind({ clock: realClock, address, configDir });
  t.after(() => logind.close());
  assert.equal(await logind.inhibitDelayMs(), 5_000);
  await logind.overrideInhibitDelay(20_000);
  assert.equal(await logind.inhibitDelayMs(), 20_000);
  assert.match(
    await readFile(join(configDir, "99-kubelet.conf"), "utf8"),
    /^# Kubelet logind override\n\[Login\]\nInhibitDelayMaxSec=20\n$/,
  );

  const heard: boolean[] = [];
  await logind.onShutdown((goesDown) => void heard.push(goesDown));
  const lock = await logind.inhibitShutdown();
  const [locks] = await bus.call({ ...manager, member: "ListInhibitors" });
  assert.deepEqual((locks as string[][])[0]?.slice(0, 4), [
    "shutdown",
    "kubelet",
    "Kubelet needs time to handle node shutdown",
    "delay",
  ]);
  await bus.call({ ...manager, member: "PowerOff", signature: "b", body: [false] });
  await waitFor(() => heard.length > 0, { what: "logind to announce the end" });
  assert.deepEqual([heard, units], [[true], []], "the machine waits");
  lock.release();
  await waitFor(() => units.length > 0, { what: "logind to go on" });
  assert.deepEqual(units, ["poweroff.target"]);
});

test("without a bus, or without logind on it, there is nothing to wait for", { skip: !canRun }, async (t) => {
  await assert.rejects(connectToBus("unix:path=/nonexistent/bus"), /ENOENT/);
  await assert.rejects(connectToBus("tcp:host=localhost"), /no unix socket in the bus address/);
  const { address } = await startLogind(t);
  const logind = await connectToLogind({ clock: realClock, address, inhibitProgram: "/nonexistent/inhibit" });
  t.after(() => logind.close());
  await assert.rejects(logind.inhibitShutdown(), /failed creating systemd inhibitor: spawn \/nonexistent\/inhibit ENOENT/);
  const failing = await connectToLogind({ clock: realClock, address, inhibitProgram: "false" });
  t.after(() => failing.close());
  await assert.rejects(failing.inhibitShutdown(), /failed creating systemd inhibitor: /);
});
