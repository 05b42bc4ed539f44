import assert from "node:assert/strict";
import { test } from "node:test";
import { aNode } from "@coxswain/apimachinery/testing/builders";
import { attachedHere } from "./attached-here.ts";
import { VolumeWaits } from "./volume.ts";

const attached = (name: string) => ({ name, devicePath: `/dev/${name}` });
for (const { name, volumesInUse = ["v1"], volumesAttached = [attached("v1")], error } of [
  { name: "that is in use and attached" },
  { name: "beside others", volumesInUse: ["v", "v1", "v12"], volumesAttached: [attached("v12"), attached("v1")] },
  {
    name: "that is not in use, but one whose name begins with its",
    volumesInUse: ["v12"],
    error: "Volume has not been added to the list of VolumesInUse in the node's volume status",
  },
  {
    name: "that is not attached, but another",
    volumesAttached: [attached("v12")],
    error: "Volume not attached according to node status",
  },
]) {
  test(`a volume ${name} is ${error === undefined ? "used" : "waited for"}`, () => {
    const node = { ...aNode({ name: "n1" }), status: { volumesInUse, volumesAttached } };
    if (error === undefined) assert.deepEqual(attachedHere(node, "v1"), attached("v1"));
    else
      assert.throws(
        () => attachedHere(node, "v1"),
        (err) => err instanceof VolumeWaits && err.message === error,
      );
  });
}

test("no volume is used before the node is known", () => {
  assert.throws(() => attachedHere(undefined, "v1"), VolumeWaits);
});
