/** What is changed in the kernel for each difference between what it has and the plan, and nothing without one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProgramError, type RunProgram } from "../host/run-program.ts";
import { commandsFor, readKernelState, readLinks, runCommands } from "./kernel-state.ts";
import { parseNetwork } from "./networks.ts";
import type { Link, Plan, PodRoute, Vxlan } from "./plan.ts";

type State = Parameters<typeof commandsFor>[1];
const names = { bridge: "cox0", vxlanId: 99, vxlanPort: 8472 };
const tunnel: Vxlan = {
  ...{ link: "cox0-vx", mac: "02:00:00:00:00:01", local: "192.168.77.1", device: "eth0", mtu: 1450 },
  addresses: ["10.77.1.0", "fd00:1::"],
  peers: [{ mac: "02:00:00:00:00:03", gateways: ["10.77.3.0", "fd00:3::"], underlay: "192.168.78.3" }],
};
const route = (destination: string, gateway: string, link = "cox0-vx"): PodRoute => ({ destination, gateway, link });
const plan: Pick<Plan, "own" | "routes" | "vxlan" | "mtu"> = {
  own: ["10.77.1.0/24", "fd00:1::/64"].map((text) => parseNetwork(text)!),
  mtu: 1450,
  routes: [
    route("10.77.2.0/24", "192.168.77.2", "eth0"),
    route("10.77.3.0/24", "10.77.3.0"),
    route("fd00:2::/64", "fd77::2", "eth0"),
    route("fd00:3::/64", "fd00:3::"),
  ],
  vxlan: tunnel,
};
const vx: Link = {
  ...{ name: "cox0-vx", mtu: 1450, address: tunnel.mac, kind: "vxlan", isUp: true },
  vxlan: { id: 99, port: 8472, local: "192.168.77.1" },
  addresses: [
    { ip: "10.77.1.0", bits: 32 },
    { ip: "fd00:1::", bits: 128 },
    { ip: "fe80::1", bits: 64 },
  ],
};
const bridge: Link = {
  ...{ name: "cox0", mtu: 1450, address: "02:00:00:00:00:09", kind: "bridge", isUp: true },
  addresses: [
    { ip: "10.77.1.1", bits: 24 },
    { ip: "fd00:1::1", bits: 64 },
    { ip: "fe80::2", bits: 64 },
  ],
};
/** The kernel as the plan says. */
const state: State = {
  links: [vx, bridge],
  routes: plan.routes,
  neighbours: ["10.77.3.0 02:00:00:00:00:03", "fd00:3:: 02:00:00:00:00:03"],
  forwarding: ["02:00:00:00:00:03 192.168.78.3"],
};
const commands = (now: Partial<State>, wanted: Partial<typeof plan> = {}, isOurs?: (route: PodRoute) => boolean): string[] => {
  const { ip, bridge: fdb } = commandsFor({ ...plan, ...wanted }, { ...state, ...now }, names, isOurs);
  return [...ip, ...fdb];
};
const without = <T>(all: readonly T[], index: number): T[] => all.filter((_, i) => i !== index);
const add =
  "link add name cox0-vx address 02:00:00:00:00:01 mtu 1450 type vxlan id 99 dstport 8472 local 192.168.77.1 dev eth0 nolearning";
const anew = [
  add,
  "link set dev cox0-vx up",
  "address add 10.77.1.0/32 dev cox0-vx",
  "address add fd00:1::/128 dev cox0-vx nodad",
  "neighbour replace 10.77.3.0 lladdr 02:00:00:00:00:03 dev cox0-vx nud permanent",
  "neighbour replace fd00:3:: lladdr 02:00:00:00:00:03 dev cox0-vx nud permanent",
];
const tunnelRoutes = [
  "route replace 10.77.3.0/24 via 10.77.3.0 dev cox0-vx proto 77 onlink",
  "route replace fd00:3::/64 via fd00:3:: dev cox0-vx proto 77 onlink",
];
const entry = "fdb append 02:00:00:00:00:03 dev cox0-vx dst 192.168.78.3 self permanent";

for (const { name, now = {}, wanted, isOurs, want } of [
  { name: "nothing, when all is there", want: [] },
  {
    name: "the whole tunnel, when there is none",
    now: { links: [bridge], routes: plan.routes.filter(({ link }) => link === "eth0"), neighbours: [], forwarding: [] },
    want: [...anew, ...tunnelRoutes, entry],
  },
  ...[
    { what: "another MAC address", link: { ...vx, address: "02:00:00:00:00:02" } },
    { what: "another identifier", link: { ...vx, vxlan: { id: 98, port: 8472, local: "192.168.77.1" } } },
    { what: "another port", link: { ...vx, vxlan: { id: 99, port: 4789, local: "192.168.77.1" } } },
    { what: "another local address", link: { ...vx, vxlan: { id: 99, port: 8472, local: "192.168.77.9" } } },
  ].map(({ what, link }) => ({
    name: `the tunnel anew with all that is on it, when it has ${what}`,
    now: { links: [link, bridge] },
    want: ["link delete dev cox0-vx", ...anew, ...tunnelRoutes, entry],
  })),
  { name: "the MTU of the tunnel", now: { links: [{ ...vx, mtu: 1400 }, bridge] }, want: ["link set dev cox0-vx mtu 1450"] },
  { name: "a tunnel that is down", now: { links: [{ ...vx, isUp: false }, bridge] }, want: ["link set dev cox0-vx up"] },
  {
    name: "the tunnel's addresses after the pod ranges, the new before the old, and its link-local one stays",
    now: { links: [{ ...vx, addresses: [{ ip: "10.77.9.0", bits: 32 }, ...vx.addresses.slice(1)] }, bridge] },
    want: ["address add 10.77.1.0/32 dev cox0-vx", "address delete 10.77.9.0/32 dev cox0-vx"],
  },
  {
    name: "a neighbour with another MAC address, in one step",
    now: { neighbours: ["10.77.3.0 02:00:00:00:00:07", "fd00:3:: 02:00:00:00:00:03"] },
    want: [anew[4]!],
  },
  {
    name: "neighbours and entries of a node that is gone",
    now: {
      neighbours: [...state.neighbours, "10.77.4.0 02:00:00:00:00:04"],
      forwarding: [...state.forwarding, "02:00:00:00:00:04 192.168.78.4"],
    },
    want: ["neighbour delete 10.77.4.0 dev cox0-vx", "fdb delete 02:00:00:00:00:04 dev cox0-vx dst 192.168.78.4 self"],
  },
  {
    name: "the entry of a node that has another address",
    now: { forwarding: ["02:00:00:00:00:03 192.168.78.9"] },
    want: ["fdb delete 02:00:00:00:00:03 dev cox0-vx dst 192.168.78.9 self", entry],
  },
  {
    name: "an IPv4 route that leads elsewhere, in one step",
    now: { routes: [route("10.77.2.0/24", "192.168.77.9", "eth0"), ...plan.routes.slice(1)] },
    want: ["route replace 10.77.2.0/24 via 192.168.77.2 dev eth0 proto 77"],
  },
  {
    name: "an IPv6 route that leads elsewhere, of which the kernel would keep both",
    now: { routes: [...without(plan.routes, 2), route("fd00:2::/64", "fd77::9", "eth0")] },
    want: ["route delete fd00:2::/64 via fd77::9 dev eth0 proto 77", "route replace fd00:2::/64 via fd77::2 dev eth0 proto 77"],
  },
  {
    name: "routes to nodes that are gone, but none of another cluster",
    now: {
      routes: [...plan.routes, route("10.77.8.0/24", "192.168.77.8", "eth0"), route("10.99.8.0/24", "192.168.77.8", "eth0")],
    },
    isOurs: ({ destination }: PodRoute) => !destination.startsWith("10.99."),
    want: ["route delete 10.77.8.0/24 via 192.168.77.8 dev eth0 proto 77"],
  },
  {
    name: "the tunnel's end, which takes its routes along",
    wanted: { vxlan: undefined, routes: plan.routes.filter(({ link }) => link === "eth0") },
    want: ["link delete dev cox0-vx"],
  },
  {
    name: "addresses of an earlier range on the bridge, but not its link-local one",
    now: { links: [vx, { ...bridge, addresses: [{ ip: "10.77.9.1", bits: 24 }, ...bridge.addresses] }] },
    want: ["address delete 10.77.9.1/24 dev cox0"],
  },
  {
    name: "the bridge's address with another length",
    now: { links: [vx, { ...bridge, addresses: [{ ip: "10.77.1.1", bits: 16 }] }] },
    want: ["address delete 10.77.1.1/16 dev cox0"],
  },
] satisfies {
  name: string;
  now?: Partial<State>;
  wanted?: Partial<typeof plan>;
  isOurs?: (route: PodRoute) => boolean;
  want: string[];
}[] as {
  name: string;
  now?: Partial<State>;
  wanted?: Partial<typeof plan>;
  isOurs?: (route: PodRoute) => boolean;
  want: string[];
}[])
  test(`changes ${name}`, () => assert.deepEqual(commands(now, wanted, isOurs), want));

test("a refused command does not keep the commands of the other program from being run, and is the error", async () => {
  const seen: string[] = [];
  const run: RunProgram = async (program, _, input) => {
    seen.push(`${program} ${input}`);
    if (program === "ip") throw new ProgramError("Command failed -:1", 1);
    return "";
  };
  await assert.rejects(runCommands(run, { ip: ["a", "b"], bridge: ["c"] }), /Command failed/);
  assert.deepEqual(seen.splice(0), ["ip a\nb\n", "bridge c\n"]);
  await runCommands(run, { ip: [], bridge: ["c"] });
  assert.deepEqual(seen, ["bridge c\n"]);
});

const said: Record<string, unknown> = {
  "ip -j -d address show": [
    {
      ifname: "eth0",
      mtu: 1500,
      address: "02:00:00:00:00:05",
      flags: ["UP"],
      addr_info: [{ local: "192.168.77.1", prefixlen: 24 }],
    },
    {
      ...{ ifname: "cox0-vx", mtu: 1450, address: tunnel.mac, flags: [] },
      linkinfo: { info_kind: "vxlan", info_data: { id: 99, port: 8472, local6: "fd77::1" } },
    },
    {},
  ],
  "ip -j -4 route show proto 77": [
    { dst: "10.77.2.0/24", gateway: "192.168.77.2", dev: "eth0" },
    { dst: "10.77.7.7", gateway: "192.168.77.7", dev: "eth0" },
    { dst: "default", dev: "eth0" },
  ],
  "ip -j neigh show nud permanent dev cox0-vx": [{ dst: "10.77.3.0", lladdr: "02:00:00:00:00:03" }, { dst: "10.77.4.0" }],
  "bridge -j fdb show dev cox0-vx": [{ mac: "02:00:00:00:00:03", dst: "192.168.78.3" }, { mac: "33:33:00:00:00:01" }],
};

test("the kernel's state is read of all programs; a kernel without IPv6 has no routes of it", async () => {
  const run: RunProgram = async (program, args) => {
    const command = [program, ...args].join(" ");
    if (command.startsWith("ip -j -6")) throw new ProgramError("Address family not supported", 2);
    return said[command] === undefined ? assert.fail(command) : JSON.stringify(said[command]);
  };
  const found = await readKernelState(run, "cox0");
  assert.deepEqual(
    found.routes.map(({ destination, gateway }) => `${destination} ${gateway}`),
    ["10.77.2.0/24 192.168.77.2", "10.77.7.7/32 192.168.77.7"],
  );
  assert.deepEqual([found.neighbours, found.forwarding], [["10.77.3.0 02:00:00:00:00:03"], ["02:00:00:00:00:03 192.168.78.3"]]);
  assert.deepEqual(
    found.links.map(({ name, isUp, vxlan }) => [name, isUp, vxlan?.local]),
    [
      ["eth0", true, undefined],
      ["cox0-vx", false, "fd77::1"],
    ],
  );
  await assert.rejects(
    readKernelState(async (_, args) => (args.includes("-4") ? Promise.reject(new ProgramError("no", 2)) : "[]"), "cox0"),
    /no/,
  );
});

test("of what the kernel lists only interfaces with a name are read, and addresses with their network", async () => {
  const shown = [
    { mtu: 1500 },
    { ifname: "lo" },
    {
      ...{ ifname: "eth0", mtu: 1400, address: "02:00:00:00:00:07", flags: ["BROADCAST", "UP"] },
      addr_info: [{ local: "192.168.77.1" }, { prefixlen: 24 }, { local: "192.168.77.2", prefixlen: 24 }, {}],
    },
    { ifname: "vx", linkinfo: { info_kind: "vxlan", info_data: { id: 7, port: 8472, local6: "fd00::1" } } },
    { ifname: "vy", linkinfo: { info_kind: "vxlan" } },
    { ifname: "br", linkinfo: { info_kind: "bridge", info_data: { id: 7 } } },
  ];
  const none = { mtu: 0, address: "", isUp: false, addresses: [] };
  assert.deepEqual(await readLinks(async () => JSON.stringify(shown)), [
    { name: "lo", ...none },
    {
      ...{ name: "eth0", mtu: 1400, address: "02:00:00:00:00:07", isUp: true },
      addresses: [{ ip: "192.168.77.2", bits: 24 }],
    },
    { name: "vx", ...none, kind: "vxlan", vxlan: { id: 7, port: 8472, local: "fd00::1" } },
    { name: "vy", ...none, kind: "vxlan", vxlan: { id: 0, port: 0, local: "" } },
    { name: "br", ...none, kind: "bridge" },
  ]);
});
