import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os, { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { configFromFlags } from "./config.ts";
import { kubeApiserver } from "./flags.ts";

const argv = ["--etcd-servers=http://127.0.0.1:2379", "--service-account-issuer=https://issuer", "--advertise-address=192.0.2.1"];
const keys = ["--service-account-key-file=/x.pub", "--service-account-signing-key-file=/x.key"];
const configOf = (...flags: string[]) => configFromFlags(parseFlags(kubeApiserver.flags, [...argv, ...keys, ...flags]).values);

for (const port of [0, -1, 65_536]) {
  test(`--secure-port=${port} ends the start`, () => {
    assert.throws(() => configOf(`--secure-port=${port}`), {
      message: `--secure-port ${port} must be between 1 and 65535, inclusive. It cannot be turned off with 0`,
    });
  });
}

test("each error of a flag is reported once, in the order of the checks", () => {
  const start = () => configOf("--goaway-chance=1", "--max-requests-inflight=-1", "--identity-lease-duration-seconds=0");
  assert.throws(start, {
    message:
      "[--max-requests-inflight can not be negative value, --goaway-chance can not be less than 0 or greater than 0.02, --identity-lease-duration-seconds should be a positive number, but value '0' provided]",
  });
});

test("a cipher suite that is unknown, or that the runtime lacks, ends the start and is named", () => {
  const start = (suite: string) => () => configOf(`--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA,${suite}`);
  assert.throws(start("TLS_MOON"), { message: "Cipher suite TLS_MOON not supported or doesn't exist" });
  assert.throws(start("TLS_RSA_WITH_RC4_128_SHA"), /TLS_RSA_WITH_RC4_128_SHA/);
  assert.doesNotThrow(start("TLS_RSA_WITH_AES_128_CBC_SHA256"));
});

test("a watch cache has a size by name; events have none unless they are given one", () => {
  const sizes = configOf("--watch-cache-sizes=pods#0,widgets.example.com#500,events#1").watchCacheSizes;
  assert.deepEqual(Object.fromEntries(sizes), {
    pods: 0,
    "widgets.example.com": 500,
    events: 1,
    "events.events.k8s.io": 0,
    masterleases: 0,
  });
});

for (const { text, message } of [
  { text: "pods", message: "invalid value of watch cache size: pods" },
  { text: "pods#1#2", message: "invalid value of watch cache size: pods#1#2" },
  { text: "pods#many", message: "invalid size of watch cache size: pods#many" },
  { text: "pods#-1", message: "watch cache size cannot be negative: pods#-1" },
]) {
  test(`--watch-cache-sizes=${text} ends the start`, () => {
    assert.throws(() => configOf(`--watch-cache-sizes=${text}`), { message });
  });
}

for (const text of ["events#http://e", "apps/v1/deployments#http://e", "/events#http://e#http://f", "/events"]) {
  test(`--etcd-servers-overrides=${text} ends the start`, () => {
    assert.throws(() => configOf(`--etcd-servers-overrides=${text}`), /--etcd-servers-overrides invalid, must be of format/);
  });
}

test("APIServices cannot be turned off, and a proxy's certificate has to be there", () => {
  assert.throws(() => configOf("--runtime-config=apiregistration.k8s.io/v1=false"), {
    message: "API group/version apiregistration.k8s.io/v1 must be enabled",
  });
  const pair = ["--proxy-client-cert-file=/nowhere.crt", "--proxy-client-key-file=/nowhere.key"];
  assert.throws(() => configOf(...pair), /no such file or directory, open '\/nowhere.crt'/);
  assert.doesNotThrow(() => configOf(pair[0] as string), "one alone is nothing");
});

for (const { flag, message } of [
  { flag: "--apiserver-count=0", message: "--apiserver-count should be a positive number, but value '0' provided" },
  { flag: "--kubernetes-service-node-port=80", message: "kubernetes service port range 30000-32767 doesn't contain 80" },
  { flag: "--kubernetes-service-node-port=29999", message: "kubernetes service port range 30000-32767 doesn't contain 29999" },
  { flag: "--kubernetes-service-node-port=32768", message: "kubernetes service port range 30000-32767 doesn't contain 32768" },
  {
    flag: "--kubernetes-service-node-port=-1",
    message:
      "--kubernetes-service-node-port -1 must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP",
  },
  { flag: "--endpoint-reconciler-type=x", message: "--endpoint-reconciler-type: unknown endpoint reconciler type: x" },
]) {
  test(`${flag} ends the start`, () => assert.throws(() => configOf(flag), { message }));
}

for (const port of [0, 30_000, 32_767]) {
  test(`--kubernetes-service-node-port=${port} is taken`, () => {
    assert.equal(configOf(`--kubernetes-service-node-port=${port}`).flags["kubernetes-service-node-port"], port);
  });
}

for (const { ranges, message } of [
  { ranges: "10.0.0.0/16,fd00::/112", message: undefined },
  { ranges: "10.0.0.0/16,fd00::/112,fd01::/112", message: "--service-cluster-ip-range must not contain more than two entries" },
  {
    ranges: "10.0.0.0/16,10.1.0.0/16",
    message: "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
  },
  {
    ranges: "10.0.0.0/8",
    message: "specified --service-cluster-ip-range is too large; for 32-bit addresses, the mask must be >= 12",
  },
  { ranges: "10.0.0.0/30", message: "the service cluster IP range must be at least 8 IP addresses" },
  { ranges: "10.0.0.0/29,fd00::/108", message: undefined },
  { ranges: "10.0.0.0/12,fd00::/125", message: undefined },
  {
    ranges: "10.0.0.0/16,fd00::/107",
    message: "specified --service-cluster-ip-range is too large; for 128-bit addresses, the mask must be >= 108",
  },
  { ranges: "10.0.0.0/33", message: "--service-cluster-ip-range[0] is not a valid CIDR: 10.0.0.0/33" },
  { ranges: "10.0.0.0/16,fd00::", message: "--service-cluster-ip-range[1] is not a valid CIDR: fd00::" },
  { ranges: "10.0.0.0/16,node/112", message: "--service-cluster-ip-range[1] is not a valid CIDR: node/112" },
]) {
  test(`--service-cluster-ip-range=${ranges}: ${message ?? "taken"}`, () => {
    const start = () => configOf(`--service-cluster-ip-range=${ranges}`);
    if (message === undefined) assert.deepEqual(start().serviceClusterIpRange, ranges.split(","));
    else assert.throws(start, { message });
  });
}

test("the certificate that kubelets get has to be there, and its key has to fit", () => {
  const pair = ["--kubelet-client-certificate=/nowhere.crt", "--kubelet-client-key=/nowhere.key"];
  assert.throws(() => configOf(...pair), /no such file or directory, open '\/nowhere.crt'/);
  assert.doesNotThrow(() => configOf(pair[0] as string), "one alone is nothing");
  assert.throws(
    () => configOf("--kubelet-certificate-authority=/nowhere.crt"),
    /no such file or directory, open '\/nowhere.crt'/,
  );
});

for (const { flags, want } of [
  { flags: ["--advertise-address=192.0.2.1", "--bind-address=192.0.2.2"], want: "192.0.2.1" },
  { flags: ["--bind-address=192.0.2.2"], want: "192.0.2.2" },
  { flags: ["--advertise-address=127.0.0.1", "--bind-address=2001:db8::2"], want: "2001:db8::2" },
]) {
  test(`with ${flags.join(" ")} the endpoints of the service kubernetes have ${want}`, () => {
    const values = parseFlags(kubeApiserver.flags, [argv[0] as string, argv[1] as string, ...keys, ...flags]).values;
    assert.equal(configFromFlags(values).advertiseAddress, want);
  });
}

test("the audiences of the API are those of the flag, and without it the first issuer alone", () => {
  const former = "--service-account-issuer=https://former";
  assert.deepEqual(configOf(former).apiAudiences, ["https://issuer"]);
  assert.deepEqual(configOf(former, "--api-audiences=a,b").apiAudiences, ["a", "b"]);
});

test("an override of etcd servers names a group, a resource and its servers; the core group is empty", () => {
  const overrides = [
    "--etcd-servers-overrides=/events#http://a:1;http://b:2",
    "--etcd-servers-overrides=apps/deployments#http://c:3",
  ];
  assert.deepEqual(configOf(...overrides).etcdOverrides, [
    { group: "", resource: "events", servers: ["http://a:1", "http://b:2"] },
    { group: "apps", resource: "deployments", servers: ["http://c:3"] },
  ]);
});

test("--cloud-config has to be there, --cloud-provider=external needs nothing", () => {
  assert.throws(
    () => configOf("--cloud-config=/nowhere/cloud.conf"),
    /^Error: Error reading from cloud configuration file \/nowhere\/cloud.conf: ENOENT/,
  );
  assert.doesNotThrow(() => configOf("--cloud-provider=external"));
});

test("--master-service-namespace is accepted as upstream: deprecated and without effect", () => {
  const flag = kubeApiserver.flags.table["master-service-namespace"];
  assert.equal(flag.deprecated, "will be removed in a future version.");
  assert.doesNotThrow(() => configOf("--master-service-namespace=services"));
});

test("several problems are reported at once", () => {
  assert.throws(() => configOf("--secure-port=0", "--goaway-chance=1"), /^.*\[--secure-port 0 .*, --goaway-chance .*\]$/);
});

test("without an etcd server there is no start, and only that is said", () => {
  const start = () => configFromFlags(parseFlags(kubeApiserver.flags, [...argv.slice(1), ...keys]).values);
  assert.throws(start, { message: "--etcd-servers must be specified" });
});

test("a value that cannot be read is one problem, beside those of others", () => {
  const start = () => configOf("--runtime-config=apps/v1=maybe", "--egress-selector-config-file=/nowhere");
  assert.throws(start, {
    message:
      "[egress-selector-config-file /nowhere does not exist, " +
      'invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax]',
  });
});

for (const { name, flags = [], interfaces, want } of [
  { name: "the flag's", flags: ["--advertise-address=192.0.2.7", "--bind-address=192.0.2.8"], interfaces: {}, want: "192.0.2.7" },
  { name: "the one that is bound", flags: ["--bind-address=192.0.2.8"], interfaces: {}, want: "192.0.2.8" },
  {
    name: "that of the second interface, where the first one is internal, or all are bound",
    flags: ["--advertise-address=127.0.0.1", "--bind-address=0.0.0.0"],
    interfaces: {
      lo: [{ internal: true, family: "IPv4", address: "127.0.0.1" }],
      eth0: [
        { internal: false, family: "IPv6", address: "fd00::1" },
        { internal: false, family: "IPv4", address: "192.0.2.9" },
      ],
    },
    want: "192.0.2.9",
  },
  {
    name: "none, where no interface has one of IPv4",
    interfaces: {
      lo: [{ internal: true, family: "IPv4", address: "127.0.0.1" }],
      eth0: [{ internal: false, family: "IPv6", address: "fd00::1" }],
    },
    want: undefined,
  },
] as { name: string; flags?: string[]; interfaces: ReturnType<typeof os.networkInterfaces>; want: string | undefined }[]) {
  test(`the advertised address is ${name}`, (t) => {
    t.mock.method(os, "networkInterfaces", () => interfaces);
    syncBuiltinESMExports();
    t.after(() => {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    });
    const start = () => configFromFlags(parseFlags(kubeApiserver.flags, [...argv.slice(0, 2), ...keys, ...flags]).values);
    if (want !== undefined) assert.equal(start().advertiseAddress, want);
    else assert.throws(start, /^Error.*unable to find suitable network address of .+: use --advertise-address$/);
  });
}

const issuing = ["--service-account-issuer=https://a", "--service-account-signing-key-file=/k", "--service-account-key-file=/p"];
const together = "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together";
for (const { argv, want } of [
  { argv: issuing.slice(0, 2), want: "service-account-key-file is a required flag" },
  { argv: issuing.slice(0, 1), want: together },
  { argv: issuing.slice(1), want: together },
  { argv: ["--api-audiences=x"], want: together },
  {
    argv: [...issuing, "--service-account-issuer=https://a"],
    want: 'service-account-issuer "https://a" is already specified',
  },
  {
    argv: [...issuing, "--service-account-issuer=a b:c"],
    want: "service-account-issuer \"a b:c\" contained a ':' but was not a valid URL",
  },
  {
    argv: [...issuing, "--service-account-max-token-expiration=59m"],
    want: "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
  },
  {
    argv: [...issuing, "--service-account-jwks-uri=http://a/keys"],
    want: "service-account-jwks-uri requires https scheme, parsed as: http://a/keys",
  },
]) {
  test(`service account flags: ${argv.join(" ")} ends the start`, () => {
    const bare = ["--etcd-servers=http://127.0.0.1:2379", "--advertise-address=192.0.2.1"];
    assert.throws(() => configFromFlags(parseFlags(kubeApiserver.flags, [...bare, ...argv]).values), { message: want });
  });
}

const longestToken = `${2 ** 32}s`;
const badExpiration = "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds";
for (const { flags, message } of [
  ...[1, 65_535].map((port) => ({ flags: [`--secure-port=${port}`], message: undefined })),
  { flags: ["--goaway-chance=0.02"], message: undefined },
  { flags: ["--goaway-chance=0.021"], message: "--goaway-chance can not be less than 0 or greater than 0.02" },
  { flags: ["--goaway-chance=-0.001"], message: "--goaway-chance can not be less than 0 or greater than 0.02" },
  { flags: ["--service-account-max-token-expiration=0"], message: undefined },
  { flags: ["--service-account-max-token-expiration=1h"], message: undefined },
  { flags: [`--service-account-max-token-expiration=${longestToken}`], message: undefined },
  { flags: ["--service-account-max-token-expiration=59m59.999s"], message: badExpiration },
  { flags: [`--service-account-max-token-expiration=${2 ** 32 + 1}s`], message: badExpiration },
  { flags: ["--service-account-max-token-expiration=-1h"], message: badExpiration },
  { flags: ["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"], message: undefined },
  { flags: ["--max-requests-inflight=-1"], message: "--max-requests-inflight can not be negative value" },
  { flags: ["--max-mutating-requests-inflight=-1"], message: "--max-mutating-requests-inflight can not be negative value" },
  { flags: ["--request-timeout=1ms"], message: undefined },
  { flags: ["--request-timeout=0"], message: "--request-timeout can not be negative value" },
  { flags: ["--identity-lease-duration-seconds=1", "--identity-lease-renew-interval-seconds=1"], message: undefined },
  {
    flags: ["--identity-lease-renew-interval-seconds=0"],
    message: "--identity-lease-renew-interval-seconds should be a positive number, but value '0' provided",
  },
  { flags: ["--service-node-port-range=1-65535", "--kubernetes-service-node-port=65535"], message: undefined },
  { flags: ["--service-node-port-range=1-65535", "--kubernetes-service-node-port=1"], message: undefined },
  {
    flags: ["--kubernetes-service-node-port=65536"],
    message:
      "[--kubernetes-service-node-port 65536 must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type " +
      "ClusterIP, kubernetes service port range 30000-32767 doesn't contain 65536]",
  },
  { flags: ["--storage-backend="], message: undefined },
  {
    flags: ["--storage-backend=etcd2"],
    message: "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'",
  },
  { flags: ["--storage-media-type=application/json"], message: undefined },
  {
    flags: ["--storage-media-type=application/yaml"],
    message:
      '--storage-media-type "application/yaml" is not supported by this server: application/json or ' +
      "application/vnd.kubernetes.protobuf",
  },
  { flags: ["--authorization-mode="], message: "at least one authorization-mode must be passed" },
  { flags: ['--service-account-issuer=""'], message: "service-account-issuer should not be an empty string" },
  { flags: ["--tls-cert-file=/x"], message: "--tls-cert-file and --tls-private-key-file must be specified together" },
  { flags: ["--tls-private-key-file=/x"], message: "--tls-cert-file and --tls-private-key-file must be specified together" },
  { flags: ["--watch-cache-sizes=pods#+1"], message: undefined },
]) {
  test(`${flags.join(" ")}: ${message ?? "taken"}`, () => {
    if (message === undefined) assert.doesNotThrow(() => configOf(...flags));
    else assert.throws(() => configOf(...flags), { message });
  });
}

const directory = mkdtempSync(join(tmpdir(), "cox-config-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const written = (name: string, text: string): string => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};
const kubeconfig = (name: string): string =>
  written(
    name,
    `clusters: [{ name: c, cluster: { server: "https://${name}" } }]\ncontexts: [{ name: x, context: { cluster: c } }]\ncurrent-context: x\n`,
  );

test("each flag of an OpenID provider is the option of its name", async () => {
  const { certPem } = await newCa({ commonName: "provider" });
  const { oidc } = configOf(
    "--oidc-issuer-url=https://idp",
    "--oidc-client-id=id",
    `--oidc-ca-file=${written("idp.crt", certPem)}`,
    "--oidc-username-claim=mail",
    "--oidc-username-prefix=u:",
    "--oidc-groups-claim=teams",
    "--oidc-groups-prefix=g:",
    "--oidc-required-claim=a=1",
    "--oidc-required-claim=b=2",
    "--oidc-signing-algs=ES256,RS256",
  );
  assert.deepEqual(oidc, {
    issuerUrl: "https://idp",
    clientId: "id",
    ca: certPem,
    usernameClaim: "mail",
    usernamePrefix: "u:",
    groupsClaim: "teams",
    groupsPrefix: "g:",
    requiredClaims: { a: "1", b: "2" },
    signingAlgorithms: ["ES256", "RS256"],
  });
  const noPem = written("no.crt", "no certificate");
  const start = () => configOf("--oidc-issuer-url=https://idp", "--oidc-client-id=id", `--oidc-ca-file=${noPem}`);
  assert.throws(start, /no\.crt/);
});

test("each webhook has the kubeconfig, version and times of its own flags", () => {
  const { tokenWebhook, authorizationWebhook } = configOf(
    `--authentication-token-webhook-config-file=${kubeconfig("tokens")}`,
    "--authentication-token-webhook-version=v1",
    "--authentication-token-webhook-cache-ttl=1s",
    "--authorization-mode=RBAC,Webhook",
    `--authorization-webhook-config-file=${kubeconfig("access")}`,
    "--authorization-webhook-version=v1beta1",
    "--authorization-webhook-cache-authorized-ttl=2s",
    "--authorization-webhook-cache-unauthorized-ttl=3s",
  );
  const partOf = (options: typeof tokenWebhook | typeof authorizationWebhook) => ({ ...options, config: options?.config.host });
  assert.deepEqual(partOf(tokenWebhook), { config: "https://tokens", version: "v1", cacheTtlMs: 1_000 });
  const access = { config: "https://access", version: "v1beta1", authorizedTtlMs: 2_000, unauthorizedTtlMs: 3_000 };
  assert.deepEqual(partOf(authorizationWebhook), access);
});

test("the files of etcd and of kubelets are read, each for its flag", () => {
  const files = ["etcd-cafile", "etcd-certfile", "etcd-keyfile", "kubelet-certificate-authority"];
  const { etcdTls, kubelet } = configOf(...files.map((flag) => `--${flag}=${written(flag, flag)}`));
  const texts = [etcdTls.ca, etcdTls.cert, etcdTls.key, kubelet.certificateAuthority].map(String);
  assert.deepEqual(texts, files);
  for (const flag of files) assert.throws(() => configOf(`--${flag}=/nonexistent`), /no such file/, flag);
});

test("a configuration of encryption may be named by the flag's former name, which the present one overrides", () => {
  const provider = (name: string, kind: string): string =>
    written(
      name,
      JSON.stringify({
        kind,
        apiVersion: "apiserver.config.k8s.io/v1",
        resources: [{ resources: ["secrets"], providers: [{ identity: {} }] }],
      }),
    );
  const [good, bad] = [provider("good.json", "EncryptionConfiguration"), provider("bad.json", "Other")];
  for (const name of ["encryption-provider-config", "experimental-encryption-provider-config"]) {
    assert.ok(configOf(`--${name}=${good}`).encryption?.transformerFor({ group: "", resource: "secrets" }), name);
    assert.throws(() => configOf(`--${name}=${bad}`), /no kind "Other"/, name);
  }
  assert.ok(configOf(`--encryption-provider-config=${good}`, `--experimental-encryption-provider-config=${bad}`).encryption);
  assert.equal(configOf().encryption, undefined);
});

test("an issuer that is named again, after others, is refused", () => {
  const start = () => configOf("--service-account-issuer=https://other", "--service-account-issuer=https://issuer");
  assert.throws(start, { message: 'service-account-issuer "https://issuer" is already specified' });
});

test("a file for a mode may be given with the mode anywhere in the list, and its key with the tokens it signs", () => {
  const flags = ["--authorization-mode=Node,RBAC,Webhook", `--authorization-webhook-config-file=${kubeconfig("third")}`];
  assert.equal(configOf(...flags).authorizationWebhook?.config.host, "https://third");
  const unsigned = ["--service-account-signing-key-file=/x.key"];
  assert.throws(() => configFromFlags(parseFlags(kubeApiserver.flags, [...argv, ...unsigned]).values), {
    message: "service-account-key-file is a required flag",
  });
});
