import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { kubeControllerManager } from "../flags.ts";
import { defaultRecyclerPod, volumesConfigOf } from "./volumes.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-volumes-"));
after(() => rmSync(folder, { recursive: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

function read(...argv: string[]) {
  const errors: string[] = [];
  return { config: volumesConfigOf(parseFlags(kubeControllerManager.flags, argv).values, errors), errors };
}

test("recycles with the pod of a file", () => {
  const pod =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: mine}\nspec:\n  volumes: [{name: vol}]\n  containers: [{name: c, image: i}]\n";
  const { config, errors } = read(`--pv-recycler-pod-template-filepath-nfs=${file("pod.yaml", pod)}`);
  assert.deepEqual(errors, []);
  assert.equal(config.recyclers.nfs.template.metadata.name, "mine");
  assert.equal(config.recyclers.nfs.template.metadata.namespace, "default");
  assert.equal(config.recyclers.hostPath.template.metadata.generateName, "pv-recycler-");
  const elsewhere = file("elsewhere.yaml", pod.replace("name: mine", "name: mine, namespace: storage"));
  const { recyclers } = read(`--pv-recycler-pod-template-filepath-hostpath=${elsewhere}`).config;
  assert.equal(recyclers.hostPath.template.metadata.namespace, "storage");
});

for (const { name, flag, error } of [
  {
    name: "a recycler pod without volumes",
    flag: `--pv-recycler-pod-template-filepath-hostpath=${file("bare.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: []}\n")}`,
    error: /^Could not create hostpath recycler pod from file .*does not contain any volume\(s\)$/,
  },
  {
    name: "a recycler pod with an empty list of volumes",
    flag: `--pv-recycler-pod-template-filepath-nfs=${file("empty.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [], volumes: []}\n")}`,
    error: /^Could not create NFS recycler pod from file .*does not contain any volume\(s\)$/,
  },
  {
    name: "a recycler pod that is no pod",
    flag: `--pv-recycler-pod-template-filepath-nfs=${file("map.yaml", "apiVersion: v1\nkind: ConfigMap\n")}`,
    error: /^Could not create NFS recycler pod from file /,
  },
  {
    name: "a recycler pod that is not there",
    flag: "--pv-recycler-pod-template-filepath-nfs=/nowhere/pod.yaml",
    error: /^Could not create NFS recycler pod from file \/nowhere\/pod.yaml: ENOENT/,
  },
]) {
  test(`refuses ${name}`, () => {
    const { errors } = read(flag);
    assert.equal(errors.length, 1);
    assert.match(errors[0] ?? "", error);
  });
}

test("without a file a pod of the image debian-base empties the volume, within a minute", () => {
  const { hostPath, nfs } = read().config.recyclers;
  assert.deepEqual([hostPath.template, nfs.template], [defaultRecyclerPod, defaultRecyclerPod]);
  // Source: pkg/volume/plugins.go NewPersistentVolumeRecyclerPodTemplate
  assert.deepEqual(defaultRecyclerPod, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { generateName: "pv-recycler-", namespace: "default" },
    spec: {
      activeDeadlineSeconds: 60,
      restartPolicy: "Never",
      volumes: [{ name: "vol" }],
      containers: [
        {
          name: "pv-recycler",
          image: "k8s.gcr.io/debian-base:v2.0.0",
          command: ["/bin/sh"],
          args: ["-c", 'test -e /scrub && rm -rf /scrub/..?* /scrub/.[!.]* /scrub/*  && test -z "$(ls -A /scrub)" || exit 1'],
          volumeMounts: [{ name: "vol", mountPath: "/scrub" }],
        },
      ],
    },
  });
});
