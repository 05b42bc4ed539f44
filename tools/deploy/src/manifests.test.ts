/** The systemd units and the compose file: what they start agrees with each other, and with what `coxswain certs` makes. */
import assert from "node:assert/strict";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeMissing } from "@coxswain/pki/make";
import { daemons } from "./release.ts";

const here = join(import.meta.dirname, "..");
const unit = (name: string): string => readFileSync(join(here, "systemd", name), "utf8");
const compose = readFileSync(join(here, "compose", "compose.yaml"), "utf8");

/** Values of a key of a unit, in order; continued lines are joined. */
const valuesOf = (text: string, key: string): string[] =>
  [...text.replaceAll("\\\n", " ").matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value.trim());

/** The flags of a unit's command by name. */
const unitFlags = (name: string): Map<string, string> => byName(valuesOf(unit(`${name}.service`), "ExecStart")[0]!.split(/\s+/));

/** A service of the compose file: its text, and its flags by name. */
function service(name: string): { text: string; flags: Map<string, string> } {
  const [, ...blocks] = compose.slice(compose.indexOf("\nservices:\n")).split(/^(?= {2}[\w-]+:$)/m);
  const text = blocks.find((block) => block.startsWith(`  ${name}:\n`)) ?? "";
  return { text, flags: byName([...text.matchAll(/^ {6}- (--\S+)$/gm)].map(([, flag = ""]) => flag)) };
}

const byName = (words: readonly string[]): Map<string, string> =>
  new Map(
    words.filter((word) => word.startsWith("--")).map((word) => [word.split("=", 1)[0]!, word.slice(word.indexOf("=") + 1)]),
  );

/** Flags that only one of both has, or has with another value, and why. */
const differences: Readonly<Record<string, readonly string[]>> = {
  // etcd is another container there; kubeadm's kubelets sign their own certificates, those of the compose file do not.
  "kube-apiserver": ["--etcd-servers", "--kubelet-certificate-authority"],
  "kube-controller-manager": ["--cluster-name", "--requestheader-client-ca-file"],
  "kube-scheduler": [],
  "coxswain-services": ["--disable", "--enable", "--node-name"],
};

for (const [name, known] of Object.entries(differences))
  test(`${name} has the same flags as a unit and as a container, but for ${known.join(", ") || "none"}`, () => {
    const [ours, theirs] = [unitFlags(name), service(name).flags];
    assert.ok(ours.size >= 3);
    const names = new Set([...ours.keys(), ...theirs.keys()]);
    assert.deepEqual([...names].filter((flag) => ours.get(flag) !== theirs.get(flag)).toSorted(), known);
  });

test("every certificate, key and kubeconfig that is named is one that `coxswain certs` makes", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-manifests-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const none = { apiserverNames: [], etcdNames: [], kubeletNames: [], kubeletClientGroups: [] };
  await makeMissing({ folder, nodeName: "n", ...none, server: () => "https://127.0.0.1:6443" });
  const made = new Set(globSync("**", { cwd: folder }));
  const texts = [
    compose,
    ...globSync(["systemd/**/*.service", "systemd/*.yaml"], { cwd: here }).map((file) => readFileSync(join(here, file), "utf8")),
  ];
  const named = texts.flatMap((text) =>
    [...text.matchAll(/\/etc\/kubernetes\/([\w./-]+\.(?:crt|key|pub|conf))/g)].map(([, file = ""]) => file),
  );
  assert.ok(named.length > 40);
  assert.deepEqual(
    named.filter((file) => !made.has(file)),
    [],
  );
  // Each pair of flags names the two halves of one pair.
  const all = [
    ...daemons.filter((name) => name !== "kubelet").map(unitFlags),
    ...[...daemons, "etcd"].map((name) => service(name).flags),
  ];
  for (const flags of all)
    for (const [cert, key] of [
      ["--tls-cert-file", "--tls-private-key-file"],
      ["--cert-file", "--key-file"],
      ["--etcd-certfile", "--etcd-keyfile"],
      ["--kubelet-client-certificate", "--kubelet-client-key"],
      ["--proxy-client-cert-file", "--proxy-client-key-file"],
      ["--cluster-signing-cert-file", "--cluster-signing-key-file"],
      ["--service-account-key-file", "--service-account-signing-key-file"],
    ] as const)
      assert.equal(flags.get(key), flags.get(cert)?.replace(/\.(crt|pub)$/, ".key"), cert);
});

test("the files that the API server is given are those that kubeadm gives it", () => {
  const flags = unitFlags("kube-apiserver");
  const pki = (file: string): string => `/etc/kubernetes/pki/${file}`;
  for (const [flag, file] of [
    ["--client-ca-file", "ca.crt"],
    ["--etcd-cafile", "etcd/ca.crt"],
    ["--etcd-certfile", "apiserver-etcd-client.crt"],
    ["--kubelet-client-certificate", "apiserver-kubelet-client.crt"],
    ["--proxy-client-cert-file", "front-proxy-client.crt"],
    ["--requestheader-client-ca-file", "front-proxy-ca.crt"],
    ["--service-account-key-file", "sa.pub"],
    ["--tls-cert-file", "apiserver.crt"],
  ] as const)
    assert.equal(flags.get(flag), pki(file));
  for (const [flag, value] of [
    ["--authorization-mode", "Node,RBAC"],
    ["--enable-admission-plugins", "NodeRestriction"],
    ["--requestheader-allowed-names", "front-proxy-client"],
    ["--secure-port", "6443"],
    ["--service-account-issuer", "https://kubernetes.default.svc.cluster.local"],
    ["--etcd-servers", "https://127.0.0.1:2379"],
  ] as const)
    assert.equal(flags.get(flag), value);
  assert.equal(service("kube-apiserver").flags.get("--kubelet-certificate-authority"), pki("ca.crt"));
});

test("networks and addresses are the same everywhere", () => {
  const [services, pods] = ["10.96.0.0/12", "10.244.0.0/16"];
  const config = unit("kubelet-config.yaml");
  const flagsOf = (name: string) => [unitFlags(name), service(name).flags];
  for (const name of ["kube-apiserver", "kube-controller-manager"])
    for (const flags of flagsOf(name)) assert.equal(flags.get("--service-cluster-ip-range"), services);
  for (const name of ["kube-controller-manager", "coxswain-services"])
    for (const flags of flagsOf(name)) assert.equal(flags.get("--cluster-cidr"), pods);
  for (const flags of [...flagsOf("coxswain-services"), service("kubelet").flags])
    assert.equal(flags.get("--cluster-dns"), "10.96.0.10");
  assert.match(config, /^clusterDNS:\n {2}- 10\.96\.0\.10\nclusterDomain: cluster\.local$/m);
  const certs = service("certs").flags;
  assert.equal(certs.get("--apiserver-names"), "kube-apiserver,10.96.0.1");
  assert.equal(certs.get("--etcd-names"), "etcd");
  assert.equal(certs.get("--kubelet-names"), service("kubelet").flags.get("--node-ip"));
  assert.equal(certs.get("--server"), service("rights").flags.get("--master"));
  assert.equal(certs.get("--outside-server"), "https://127.0.0.1:6443");
  const nodes = ["certs", "coxswain-services"].map((name) => service(name).flags.get("--node-name"));
  assert.deepEqual([...nodes, service("kubelet").flags.get("--hostname-override")], Array(3).fill("${NODE_NAME:-coxswain}"));
});

test("the kubelet refuses anonymous requests and asks the API server, in its file and in the container", () => {
  const config = unit("kubelet-config.yaml");
  assert.match(
    config,
    /^authentication:\n {2}anonymous:\n {4}enabled: false\n {2}webhook:\n {4}enabled: true\n {2}x509:\n {4}clientCAFile: \/etc\/kubernetes\/pki\/ca\.crt\nauthorization:\n {2}mode: Webhook$/m,
  );
  assert.match(config, /^rotateCertificates: true\nstaticPodPath: \/etc\/kubernetes\/manifests$/m);
  const { flags } = service("kubelet");
  for (const [flag, value] of [
    ["--anonymous-auth", "false"],
    ["--authentication-token-webhook", "true"],
    ["--authorization-mode", "Webhook"],
    ["--read-only-port", "0"],
    ["--pod-manifest-path", "/etc/kubernetes/manifests"],
    ["--client-ca-file", "/etc/kubernetes/pki/ca.crt"],
  ] as const)
    assert.equal(flags.get(flag), value, flag);
});

const confined = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
test("the three daemons of the control plane are confined alike, each as a user of its own", () => {
  const walls = (name: string): string => unit(`${name}.service`).split("# What none of them needs.")[1] ?? "";
  for (const name of confined) assert.equal(walls(name), walls("kube-apiserver"));
  for (const line of [
    ...["CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes"],
    ...[
      "PrivateDevices=yes",
      "ProtectProc=invisible",
      "RestrictSUIDSGID=yes",
      "SystemCallFilter=~@privileged @resources",
      "UMask=0077",
    ],
  ])
    assert.ok(walls("kube-apiserver").split("\n").includes(line), line);
  const users = unit("coxswain-users.conf");
  for (const name of confined) {
    assert.deepEqual(valuesOf(unit(`${name}.service`), "User"), [name]);
    assert.match(users, new RegExp(`^u ${name} - `, "m"));
  }
  const readers = [...users.matchAll(/^m (\S+) kube-service-accounts$/gm)].map(([, name]) => name);
  assert.deepEqual(readers, ["kube-apiserver", "kube-controller-manager"], "who reads the key of tokens");
  assert.deepEqual(valuesOf(unit("coxswain-services.service"), "CapabilityBoundingSet"), [
    "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_NET_ADMIN CAP_NET_BIND_SERVICE CAP_NET_RAW CAP_SYS_MODULE",
  ]);
});

for (const { name, type, after, restartSeconds, args } of [
  { name: "kube-apiserver", type: "notify", after: "etcd", restartSeconds: "5", args: "KUBE_APISERVER_ARGS" },
  {
    name: "kube-controller-manager",
    type: "exec",
    after: "kube-apiserver",
    restartSeconds: "5",
    args: "KUBE_CONTROLLER_MANAGER_ARGS",
  },
  { name: "kube-scheduler", type: "exec", after: "kube-apiserver", restartSeconds: "5", args: "KUBE_SCHEDULER_ARGS" },
  { name: "kubelet", type: "notify", after: "containerd", restartSeconds: "10", args: "KUBELET_ARGS" },
  { name: "coxswain-services", type: "exec", after: "kubelet", restartSeconds: "5", args: "COXSWAIN_SERVICES_ARGS" },
])
  test(`the unit ${name} is started at boot behind ${after}, again without end, and takes the user's flags last`, () => {
    const text = unit(`${name}.service`);
    const has = (key: string, ...values: string[]) => assert.deepEqual(valuesOf(text, key), values, key);
    has("Type", type);
    if (type === "notify") {
      has("NotifyAccess", "all"); // a child process notifies
      has("TimeoutStartSec", "infinity");
    }
    has("After", `network-online.target ${after}.service`);
    has("Wants", "network-online.target");
    has("StartLimitIntervalSec", "0");
    has("Restart", "always");
    has("RestartSec", restartSeconds);
    has("WantedBy", "multi-user.target");
    has("EnvironmentFile", `-/etc/kubernetes/${name}.env`);
    has("CacheDirectory", name);
    has("CacheDirectoryMode", "0700");
    const [command = ""] = valuesOf(text, "ExecStart");
    assert.ok(command.startsWith(`/usr/bin/${name} `) && command.endsWith(` $${args}`), command);
    assert.match(text, new RegExp(`^# ${args}: `, "m"));
    has("LimitNOFILE", name === "kubelet" ? "1048576" : "65536");
    const arenas = ["kubelet", "coxswain-services"].includes(name) ? ["MALLOC_ARENA_MAX=1"] : [];
    has("Environment", ...arenas);
  });

test("the kubelet's drop-in is kubeadm's", () => {
  const text = readFileSync(join(here, "systemd", "kubelet.service.d", "10-kubeadm.conf"), "utf8");
  assert.deepEqual(valuesOf(text, "Environment"), [
    '"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"',
    '"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"',
  ]);
  assert.deepEqual(valuesOf(text, "EnvironmentFile"), ["-/var/lib/kubelet/kubeadm-flags.env", "-/etc/default/kubelet"]);
  assert.deepEqual(valuesOf(text, "ExecStart"), [
    "", // empties the unit's
    "/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS",
  ]);
  assert.match(
    unit("kubeadm-flags.env"),
    /^KUBELET_KUBEADM_ARGS="--container-runtime=remote --container-runtime-endpoint=unix:\/\/\/run\/containerd\/containerd\.sock"$/m,
  );
});

for (const [name, waitsFor, condition] of [
  ["etcd", "certs", "service_completed_successfully"],
  ["kube-apiserver", "etcd", "service_healthy"],
  ["kube-controller-manager", "kube-apiserver", "service_healthy"],
  ["kube-scheduler", "kube-apiserver", "service_healthy"],
  ["rights", "kube-apiserver", "service_healthy"],
  ["kubelet", "kube-apiserver", "service_healthy"],
  ["coxswain-services", "rights", "service_completed_successfully"],
] as const)
  test(`the container ${name} starts when ${waitsFor} is ready`, () =>
    assert.match(service(name).text, new RegExp(`^ {4}depends_on:\\n {6}${waitsFor}: \\{ condition: ${condition} \\}$`, "m")));

for (const [name, url] of [
  ["etcd", "http://127.0.0.1:2381/health"],
  ["kube-apiserver", "https://127.0.0.1:6443/readyz"],
  ["kube-controller-manager", "https://127.0.0.1:10257/healthz"],
  ["kube-scheduler", "https://127.0.0.1:10259/healthz"],
  ["kubelet", "http://127.0.0.1:10248/healthz"],
  ["coxswain-services", "https://127.0.0.1:10261/healthz"],
] as const)
  test(`the container ${name} is healthy when ${url} answers`, () =>
    assert.match(
      service(name).text,
      new RegExp(`^ {6}test: \\[CMD, coxswain, check, "${url}"(?:, /etc/kubernetes/pki/ca\\.crt)?\\]$`, "m"),
    ));

test("only what needs them has rights in the compose file, and only the API server's port is outside, on this machine", () => {
  for (const name of ["etcd", ...confined]) assert.match(service(name).text, /^ {4}<<: \[\*daemon, \*confined\]$/m, name);
  assert.match(service("rights").text, /^ {4}<<: \*confined$/m);
  assert.match(
    compose,
    /^x-confined: &confined\n {2}read_only: true\n {2}cap_drop: \[ALL\]\n {2}security_opt: \["no-new-privileges:true"\]$/m,
  );
  assert.match(compose, /^x-daemon: &daemon\n {2}image: coxswain:[\d.]+\n[\s\S]*?^ {2}restart: always\n {2}init: true$/m);
  assert.deepEqual(
    [...compose.matchAll(/^ {4}ports:\n((?: {6}- .*\n)+)/gm)].map(([, ports]) => ports),
    ['      - "127.0.0.1:6443:6443"\n'],
  );
  assert.match(service("certs").text, /^ {4}network_mode: none$/m);
  const volumes = [...compose.matchAll(/^ {6}- kubernetes:\/etc\/kubernetes(:ro)?$/gm)].map(([, mode]) => mode);
  assert.equal(volumes.filter((mode) => mode === undefined).length, 2, "certs and the kubelet write there");
  assert.match(service("kubelet").text, /^ {6}- \/var\/lib\/kubelet:\/var\/lib\/kubelet:rshared$/m);
  const { flags } = service("etcd");
  assert.deepEqual(
    [flags.get("--client-cert-auth"), flags.get("--trusted-ca-file")],
    ["true", "/etc/kubernetes/pki/etcd/ca.crt"],
  );
});

test("the Dockerfile installs what the image that is built here contains", () => {
  const dockerfile = readFileSync(join(here, "compose", "Dockerfile"), "utf8");
  const installed = new Set(/apt-get install -y --no-install-recommends (.*) \\/.exec(dockerfile)?.[1]?.split(" "));
  const source = readFileSync(join(import.meta.dirname, "image.ts"), "utf8");
  const table = /const programs[^{]*\{([\s\S]*?)\n\};/.exec(source)?.[1] ?? "";
  const packages = new Set([...table.matchAll(/: "([\w-]+)",/g)].map(([, name]) => name!));
  for (const own of ["coreutils", "busybox-static"]) packages.delete(own); // Debian's image has those
  assert.deepEqual(
    [...packages].filter((name) => !installed.has(name)),
    [],
  );
  for (const folder of ["bin", "lib", "libexec", "licences"])
    assert.match(dockerfile, new RegExp(`^COPY ${folder} /opt/coxswain/${folder}$`, "m"));
  assert.match(dockerfile, /touch \/opt\/coxswain\/image$/m);
});
