/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "volumeattachments.storage.k8s.io";
const kib256 = 256 * 1024;
const sized = (bytes: number) => ({ "status.attachmentMetadata": { aa: "v".repeat(bytes - 2) } });

testAccepted([
  {
    resource,
    name: "attachers, nodes and volumes",
    taken: [{ "spec.attacher": "a".repeat(63) }, { "spec.nodeName": "a.b" }, { "spec.source.persistentVolumeName": "a.b" }],
    refused: [
      [{ "spec.attacher": "a".repeat(64) }, "spec.attacher: Too long: must have at most 63 bytes"],
      [{ "spec.source": {} }, "spec.source: Required value: must specify exactly one of"],
      [{ "spec.nodeName": "A" }, 'spec.nodeName: Invalid value: "A"'],
    ],
  },
  {
    resource,
    name: "nothing of the spec of an attachment",
    before: {},
    taken: [{ "metadata.labels": { a: "b" } }],
    refused: [
      [{ "spec.nodeName": "m" }, "spec: Invalid value: storage.VolumeAttachmentSpec{"],
      [{ "spec.source.persistentVolumeName": "w" }, "spec: Invalid value: storage.VolumeAttachmentSpec{"],
      [{ "spec.attacher": "b" }, "spec: Invalid value: storage.VolumeAttachmentSpec{"],
    ],
  },
  {
    resource,
    name: "a status up to its limits",
    status: true,
    before: {},
    taken: [
      { "status.attachError": { message: "m".repeat(1024) } },
      { "status.detachError": { message: "m".repeat(1024) } },
      sized(kib256),
    ],
    refused: [
      [
        { "status.attachError": { message: "m".repeat(1025) } },
        "status.attachError.message: Too long: must have at most 262144 bytes",
      ],
      [
        { "status.detachError": { message: `${"m".repeat(1023)}é` } },
        "status.detachError.message: Too long: must have at most 262144 bytes",
      ],
      [sized(kib256 + 1), "status.attachmentMetadata: Too long: must have at most 262144 bytes"],
    ],
  },
]);
