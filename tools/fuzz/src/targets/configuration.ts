/** Flags and configuration files. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { FlagError, parseFlags } from "@coxswain/apimachinery/flags/flags";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { readPluginConfigurations } from "@coxswain/apiserver/admission/configuration";
import { readPodSecurityConfiguration } from "@coxswain/apiserver/admission/pod-security/policy";
import { parsePolicy } from "@coxswain/apiserver/audit/policy";
import { parseAbacPolicies } from "@coxswain/apiserver/authorization/abac";
import { readEgressConfiguration } from "@coxswain/apiserver/egress/configuration";
import { parseEncryptionConfig } from "@coxswain/apiserver/storage/etcd/encryption-config";
import { readConfiguration } from "@coxswain/node-agent/config";
import { kubelet } from "@coxswain/node-agent/flags";
import { readSchedulerConfig } from "@coxswain/scheduler/config/file";
import type { Target } from "../target.ts";

let folder = "";
/** Writes the input to a file, for readers that take a path. */
function file(input: Buffer): string {
  folder ||= mkdtempSync(join(tmpdir(), "cox-fuzz-"));
  const path = join(folder, "config.yaml");
  writeFileSync(path, input);
  return path;
}

const words = ["apiVersion:", "kind:", "null", "[]", "{}", ": ", "- ", "\n", "true", "1h", "-1", '""'];
const declares = [Error, ConfigError];

export const targets: readonly Target[] = [
  {
    name: "kubeconfig",
    seeds: [
      "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://a:6443', proxy-url: 'http://b'}}]\nusers: [{name: u, user: {token: t, exec: {command: x, apiVersion: client.authentication.k8s.io/v1}}}]\n",
    ],
    dictionary: words,
    declares,
    run: (input) => void parseKubeconfig(input.toString()),
  },
  {
    name: "flags",
    seeds: [
      "--v=4\n--feature-gates=a=true,DynamicKubeletConfig=false\n--eviction-hard=memory.available<5%",
      "--node-labels=a=b\n-v\n2\n--register-with-taints=a=b:NoSchedule",
    ],
    dictionary: ["--", "=", "\n", ",", "--kube-reserved=cpu=1", "--node-ip=::1", "--help", "-v", "_"],
    declares: [FlagError],
    run: (input) => void parseFlags(kubelet.flags, input.toString().split("\n")),
  },
  {
    name: "audit-policy",
    seeds: [
      "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n  resources: [{group: '', resources: [pods], resourceNames: [a]}]\n  omitStages: [RequestReceived]\n- level: None\n  nonResourceURLs: ['/healthz*']\n",
    ],
    dictionary: words,
    declares,
    run: (input) => void parsePolicy(input.toString()),
  },
  {
    name: "encryption",
    seeds: [
      "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - aescbc: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}\n  - identity: {}\n",
    ],
    dictionary: [...words, "secretbox:", "aesgcm:", "kms:"],
    declares,
    run: (input) => void parseEncryptionConfig(input.toString()),
  },
  {
    name: "pod-security",
    seeds: [
      "apiVersion: pod-security.admission.config.k8s.io/v1beta1\nkind: PodSecurityConfiguration\ndefaults: {enforce: baseline, enforce-version: latest}\nexemptions: {usernames: [a], namespaces: [b]}\n",
    ],
    dictionary: words,
    declares,
    run: (input) => void readPodSecurityConfiguration(parseYaml(input.toString())),
  },
  {
    name: "abac",
    seeds: [
      '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"a","namespace":"*","resource":"pods","readonly":true}}\n{"user":"b"}',
    ],
    dictionary: ['"spec":', '"group":', "null", "[]", "\n", "#"],
    declares,
    run: (input) => void parseAbacPolicies(input.toString(), "f"),
  },
  {
    name: "admission",
    seeds: [
      "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: PodSecurity\n  configuration: {kind: A}\n",
    ],
    dictionary: words,
    declares,
    run: (input) => void readPluginConfigurations(file(input)),
  },
  {
    name: "egress",
    seeds: [
      "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: cluster\n  connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://a'}}}\n",
    ],
    dictionary: words,
    declares,
    run: (input) => void readEgressConfiguration(file(input)),
  },
  {
    name: "kubelet",
    seeds: [
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {memory.available: 5%}\nsyncFrequency: 1m\nmaxPods: 110\n",
    ],
    dictionary: words,
    declares,
    run: (input) => void readConfiguration(file(input)),
  },
  {
    name: "scheduler",
    seeds: [
      "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: a\n  plugins: {score: {disabled: [{name: '*'}]}}\n  pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {}}}]\n",
    ],
    dictionary: words,
    declares,
    run: (input) => void readSchedulerConfig(file(input)),
  },
];
