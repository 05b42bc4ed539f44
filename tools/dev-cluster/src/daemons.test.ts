import assert from "node:assert/strict";
import { test } from "node:test";
import { daemonNames, daemonProcess } from "./daemons.ts";
import { servicePartsOf } from "./service-parts.ts";
import { defaultChoices, newSettings, withRequested } from "./settings.ts";

const settingsWith = (...services: string[]) => {
  const extraArgs = services.length === 0 ? {} : { "coxswain-services": services };
  return newSettings("/clone", "default", "/clone/.cox", withRequested(defaultChoices(), { extraArgs }), {});
};

const all = ["pod-network", "services", "dns", "metrics-api", "local-volumes", "load-balancers", "load-balancer-addresses"];

for (const { args, want } of [
  { args: [], want: all },
  { args: ["--v=4"], want: all },
  { args: ["--enable=ingress"], want: [...all, "ingress"] },
  { args: ["--disable=dns,metrics-api"], want: all.filter((name) => !["dns", "metrics-api"].includes(name)) },
  { args: ["--disable=*", "--enable=services,", "--enable=dns"], want: ["services", "dns"] },
  { args: ["--disable=*"], want: [] },
]) {
  test(`with ${args.join(" ") || "no flags of the user"} coxswain-services runs ${want.join()}`, () =>
    assert.deepEqual(servicePartsOf(settingsWith(...args)), want));
}

test("a selection of parts is passed to the process as one flag", () => {
  const { args } = daemonProcess(settingsWith("--enable=ingress", "--disable=dns"), "coxswain-services");
  const chosen = args.filter((arg) => /^--(?:enable|disable)=/.test(arg));
  assert.deepEqual(chosen, ["--disable=*", `--enable=${[...all.filter((name) => name !== "dns"), "ingress"].join()}`]);
});

test("pods get the DNS server's address", () => {
  const settings = settingsWith();
  assert.equal(settings.dnsAddress, "10.96.0.10");
  for (const name of ["kubelet", "coxswain-services"] as const)
    assert.ok(daemonProcess(settings, name).args.includes("--cluster-dns=10.96.0.10"), name);
});

test("the daemons of a node have one arena of the C library's allocator, those of the control plane its default", () => {
  const arenas = daemonNames.map((name) => [name, daemonProcess(settingsWith(), name).env?.["MALLOC_ARENA_MAX"]]);
  assert.deepEqual(Object.fromEntries(arenas), {
    ...{ "kube-apiserver": undefined, "kube-controller-manager": undefined, "kube-scheduler": undefined },
    ...{ kubelet: "1", "coxswain-services": "1" },
  });
});
