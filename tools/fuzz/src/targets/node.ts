/** Data that the node agent reads from its machine and its container runtime. */
import assert from "node:assert/strict";
import { decodeMessage, splitSignature } from "@coxswain/node-agent/dbus/message";
import { decodeSource } from "@coxswain/node-agent/dynamic-config/config-source";
import { parseResolvConf } from "@coxswain/node-agent/environment/dns";
import { decodeCheckpoint } from "@coxswain/node-agent/resources/checkpoint-file";
import { formatCpus, parseCpus } from "@coxswain/node-agent/resources/cpu/cpu-set";
import { cpuStateForm } from "@coxswain/node-agent/resources/cpu/cpu-state";
import { deviceCheckpointForm } from "@coxswain/node-agent/resources/devices/device-checkpoint";
import { parseThresholds } from "@coxswain/node-agent/resources/eviction-thresholds";
import { memoryStateForm } from "@coxswain/node-agent/resources/memory/memory-state";
import { parseReservedMemory } from "@coxswain/node-agent/resources/memory/reserved-memory";
import { decodeCri } from "@coxswain/node-agent/runtime/cri-client";
import { loginsFor, parseDockerConfig } from "@coxswain/node-agent/runtime/image-credentials";
import { formatLine } from "@coxswain/node-agent/runtime/logs";
import { csiMessages } from "@coxswain/node-agent/volumes/csi/csi-schema";
import { mountOf } from "@coxswain/node-agent/volumes/quota/project-quotas";
import type { Target } from "../target.ts";

export const targets: readonly Target[] = [
  {
    name: "log-line",
    seeds: [
      "2021-12-07T10:11:12.5Z stdout F hello",
      "2021-12-07T10:11:12+01:00 stderr P part",
      "2021-12-07T10:11:12.123456789Z stdout F:x ",
    ],
    dictionary: [" stdout ", " stderr ", " F ", " P ", ":", "Z"],
    run(input) {
      formatLine(input, { timestamps: true });
      formatLine(input, { timestamps: false, since: 0 });
    },
  },
  {
    name: "resolv-conf",
    seeds: ["nameserver 192.0.2.1\nsearch a. b\noptions ndots:5 edns0\n# c"],
    dictionary: ["nameserver ", "search ", "options ", "#", ";", "\n"],
    run: (input) => void parseResolvConf(input.toString()),
  },
  {
    name: "cpu-list",
    seeds: ["0-3,8", "", "0"],
    dictionary: ["-", ",", "65535"],
    declares: [Error],
    maxBytes: 200,
    run(input) {
      const cpus = parseCpus(input.toString());
      assert.deepEqual(parseCpus(formatCpus(cpus)), cpus);
    },
  },
  {
    name: "thresholds",
    seeds: ["memory.available<10%", "nodefs.available<1Gi", "memory.available<100Mi"],
    dictionary: ["%", "<", "nodefs.inodesFree", "pid.available"],
    declares: [Error],
    run(input) {
      const [name = "", value = ""] = input.toString().split("<");
      parseThresholds({ hard: { [name]: value }, soft: {}, softGraceMs: {}, minReclaim: {} });
    },
  },
  {
    name: "reserved-memory",
    seeds: ["0:memory=1Gi,hugepages-1Gi=2Gi"],
    dictionary: [":", "=", ",", ";", "hugepages-2Mi"],
    declares: [Error],
    run: (input) => void parseReservedMemory([input.toString()], undefined),
  },
  {
    name: "docker-config",
    seeds: ['{"auths":{"https://*.example.com/v1/":{"auth":"dTpw"}}}', '{"a":{"username":"u","password":"p"}}'],
    dictionary: ['"auths":', '"auth":"', "null", "*", "[]", "https://"],
    run: (input) => void loginsFor("a.example.com/team/app:1", parseDockerConfig(input.toString())),
  },
  {
    name: "cri-answers",
    seeds: [Buffer.from([0x0a, 4, 0x0a, 2, 0x61, 0x62, 0x12, 2, 8, 1])],
    dictionary: [Buffer.of(0xff, 0xff, 0xff, 0xff, 0x0f), Buffer.of(0x0a), Buffer.of(0x12), Buffer.of(0x22)],
    // protobufjs throws RangeError for truncated bytes, and TypeError for invalid UTF-8.
    declares: [Error, RangeError, TypeError],
    run(input) {
      for (const name of [
        "ListContainersResponse",
        "ContainerStatusResponse",
        "ListPodSandboxResponse",
        "PodSandboxStatusResponse",
        "ListImagesResponse",
      ] as const)
        decodeCri(name, input);
    },
  },
  {
    name: "csi-answers",
    seeds: [
      csiMessages.encode("NodeGetInfoResponse", {
        nodeId: "n",
        maxVolumesPerNode: 9,
        accessibleTopology: { segments: { a: "b" } },
      }),
      csiMessages.encode("NodeGetVolumeStatsResponse", {
        usage: [{ available: 1, total: 2, used: 1, unit: 1 }],
        volumeCondition: { abnormal: true, message: "m" },
      }),
      csiMessages.encode("NodeGetCapabilitiesResponse", { capabilities: [{ rpc: { type: 1 } }, {}] }),
    ],
    dictionary: [Buffer.of(0xff, 0xff, 0xff, 0xff, 0x0f), Buffer.of(0x0a), Buffer.of(0x12), Buffer.of(0x1a)],
    declares: [Error, RangeError, TypeError],
    run(input) {
      for (const name of [
        "NodeGetInfoResponse",
        "NodeGetVolumeStatsResponse",
        "NodeGetCapabilitiesResponse",
        "NodeExpandVolumeResponse",
      ] as const)
        csiMessages.decode(name, input);
    },
  },
  {
    name: "checkpoints",
    seeds: [
      cpuStateForm.encode({
        policy: "static",
        shared: parseCpus("0-1"),
        assigned: new Map([["uid", new Map([["web", parseCpus("2-3")]])]]),
      }),
      memoryStateForm.encode({
        policy: "Static",
        nodes: new Map([
          [
            0,
            {
              ...{ assignments: 1, group: [0] },
              tables: new Map([["memory", { total: 4, systemReserved: 1, allocatable: 3, reserved: 1, free: 2 }]]),
            },
          ],
        ]),
        assigned: new Map([["uid", new Map([["web", [{ nodes: [0], type: "memory", sizeBytes: 1 }]]])]]),
      }),
      deviceCheckpointForm.encode({
        given: [
          { ...{ podUid: "u", container: "c", resource: "a/b" }, byNode: new Map([[0, ["d1"]]]), answer: Buffer.from("x") },
        ],
        registered: new Map([["a/b", ["d1", "d2"]]]),
      }),
    ],
    dictionary: ["null", "[]", "{}", '"', ":", ",", "-1", '"entries":', '"cells":', '"DeviceIDs":', '"__proto__":', "1e400"],
    declares: [Error, SyntaxError],
    run(input) {
      const text = input.toString();
      const refusals: unknown[] = [];
      for (const form of [cpuStateForm, memoryStateForm, deviceCheckpointForm]) {
        try {
          decodeCheckpoint<unknown>(form, text);
        } catch (err) {
          refusals.push(err);
        }
      }
      const odd = refusals.find((err) => (err as Error).constructor !== Error && !(err instanceof SyntaxError)); // cast: any thrown value has a constructor
      if (odd !== undefined) throw odd;
    },
  },
  {
    name: "dbus",
    seeds: [
      Buffer.from(
        "6c01000100000000010000001d0000000101 6f00010000002f00000000000000030173000100000061000000".replace(/ /g, ""),
        "hex",
      ),
    ],
    dictionary: ["l", "B", "a{sv}", "(so)", Buffer.of(1, 0, 0, 0)],
    declares: [Error],
    run: (input) => void decodeMessage(input),
  },
  {
    name: "dbus-signature",
    seeds: ["a{sv}", "(ss)u", "aas"],
    dictionary: ["a", "{", "}", "(", ")"],
    declares: [Error],
    run: (input) => void splitSignature(input.toString("latin1")),
  },
  {
    name: "mounts",
    seeds: ["/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\n/dev/b /a\\040b xfs rw,prjquota 0 0\n"],
    dictionary: ["\\040", " ", "\n", "/"],
    run: (input) => void mountOf(input.toString(), "/a b/c"),
  },
  {
    name: "config-source",
    seeds: [
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SerializedNodeConfigSource\nsource: {configMap: {name: a, namespace: b}}\n",
    ],
    dictionary: ["source:", "configMap:", "null", "{}"],
    declares: [Error],
    maxBytes: 300,
    run: (input) => void decodeSource(input.toString()),
  },
];
