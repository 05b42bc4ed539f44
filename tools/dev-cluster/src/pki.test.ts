import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { Failure } from "./failure.ts";
import {
  certificateProblem,
  kubeconfigFile,
  makeMissing,
  pkiFile,
  pkiPlan,
  prepareCertificates,
  withOldKubeconfig,
} from "./pki.ts";
import { defaultChoices, newSettings } from "./settings.ts";
import type { ProcessState } from "./supervisor-decisions.ts";
import { writeState } from "./supervisor-state.ts";

test("a process that started before its kubeconfig was written is found", (t) => {
  const state = mkdtempSync(join(tmpdir(), "cox-kubeconfigs-"));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  const settings = { state };
  assert.deepEqual(withOldKubeconfig(settings), [], "nothing is there");
  const at = 1_600_000_000;
  const write = (name: "controller-manager" | "kubelet" | "scheduler" | "services", seconds: number): void => {
    writeFileSync(kubeconfigFile(settings, name), "");
    utimesSync(kubeconfigFile(settings, name), seconds, seconds);
  };
  const process = (name: string, phase: ProcessState["phase"]) => ({
    [name]: { spec: { name, command: name, args: [] }, state: { phase, since: at * 1000, restarts: 0, quickEnds: 0 } },
  });
  mkdirSync(join(state, "run"));
  const record = (kubelet: ProcessState["phase"]): void =>
    writeState(settings, {
      supervisor: { pid: 1, startTime: "1", since: 0, version: "" },
      processes: {
        ...process("kube-controller-manager", "running"),
        ...process("kube-scheduler", "running"),
        ...process("kubelet", kubelet),
        ...process("coxswain-services", "running"),
      },
    });
  record("stopped");
  write("controller-manager", at - 1);
  write("scheduler", at + 1);
  write("kubelet", at + 1);
  write("services", at + 1);
  assert.deepEqual(withOldKubeconfig(settings), ["kube-scheduler", "coxswain-services"]);
  record("running");
  assert.deepEqual(withOldKubeconfig(settings), ["kube-scheduler", "kubelet", "coxswain-services"]);
});

test("the certificates name every address of the API server and the kubelet, and give the kubelet's client no group", () => {
  const choices = { ...defaultChoices(), nodeName: "n1", ports: { ...defaultChoices().ports, apiserver: 7443 } };
  const settings = newSettings("/clone", "b", "/s", choices, {}, 0);
  const { server, isEarlierServer, ...plan } = pkiPlan(settings);
  assert.deepEqual(plan, {
    folder: "/s",
    nodeName: "n1",
    apiserverNames: ["10.244.0.1", "10.96.0.1"],
    etcdNames: [],
    kubeletNames: ["10.244.0.1"],
    kubeletClientGroups: [],
  });
  assert.equal(server("admin"), "https://127.0.0.1:7443");
  const urls = [
    "https://127.0.0.1:6443",
    "https://127.0.0.1:16443",
    "https://127.0.0.1",
    "https://10.0.0.1:6443",
    "https://127.0.0.1:1/x",
  ];
  assert.deepEqual(
    urls.map((url) => isEarlierServer?.(url)),
    [true, true, false, false, false],
  );
});

test("what is made and renewed of the certificates is told: a first start in one line, a few files one by one", async (t) => {
  const state = mkdtempSync(join(tmpdir(), "cox-certificates-"));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  const settings = newSettings("/clone", "b", state, defaultChoices(), {}, 0);
  const [line = "", ...more] = await prepareCertificates(settings);
  assert.match(line, new RegExp(`^made \\d+ certificates, keys and kubeconfigs in ${state}$`));
  assert.deepEqual(more, []);
  assert.deepEqual(await prepareCertificates(settings), []);
  assert.equal(certificateProblem(settings), undefined);

  const four = (["admin", "controller-manager", "scheduler", "kubelet"] as const).map((name) => kubeconfigFile(settings, name));
  for (const file of four) rmSync(file);
  const told = await prepareCertificates(settings);
  assert.equal(told.length, 4, told.join("; "));
  for (const file of four) assert.ok(existsSync(file) && told.some((each) => each.includes(file)), file);
  for (const file of [...four, kubeconfigFile(settings, "services")]) rmSync(file);
  assert.deepEqual(await prepareCertificates(settings), [`made 5 certificates, keys and kubeconfigs in ${state}`]);

  const { certPem, keyPem } = await newCa({ commonName: "front-proxy-ca", now: 0 });
  writeFileSync(pkiFile(settings, "front-proxy-ca.crt"), certPem);
  writeFileSync(pkiFile(settings, "front-proxy-ca.key"), keyPem);
  const expired = /^\S+front-proxy-ca\.crt \(CN=front-proxy-ca\) expired on \S+\nrenew them: \.\/cox certs renew --name b$/;
  assert.match(certificateProblem(settings) ?? "", expired);
  assert.match(certificateProblem({ ...settings, name: "default" }) ?? "", /renew them: \.\/cox certs renew$/);
  rmSync(pkiFile(settings, "ca.key"));
  rmSync(pkiFile(settings, "apiserver.crt"));
  await assert.rejects(prepareCertificates(settings), (err) => err instanceof Failure && /ca\.key/.test(err.message));
});

test("a certificate that ends soon is renewed, and that is told", async (t) => {
  const state = mkdtempSync(join(tmpdir(), "cox-certificates-"));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  const settings = newSettings("/clone", "b", state, defaultChoices(), {}, 0);
  // Client and serving certificates of a year, made eleven months ago and more; the authorities have ten years.
  await makeMissing(pkiPlan(settings), { now: Date.now() - 360 * 86_400_000 });
  const lines = await prepareCertificates(settings);
  assert.match(lines.join("\n"), /renewed /);
});
