import { testKindRules } from "../../../testing/kind-rules.ts";

const iscsi = (targetPortal: string): object => ({
  ...{ targetPortal, iqn: "iqn.2015-02.a.b:c", lun: 0 },
  initiatorName: "iqn.2015-02.a.b:i",
});

testKindRules("persistentvolumes", { spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] } }, [
  {
    name: "a host path that climbs, of an unknown type",
    change: { "spec.hostPath": { path: "../x", type: "Mine" } },
    want: [
      "spec.hostPath.path: Invalid value: \"../x\": must not contain '..'",
      'spec.hostPath.type: Unsupported value: "Mine": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
    ],
  },
  { name: "an empty host path", change: { "spec.hostPath": { path: "" } }, want: ["spec.hostPath.path: Required value"] },
  {
    name: "a persistent disk of no name",
    change: { "spec.gcePersistentDisk": { pdName: "", partition: 256 } },
    want: [
      "spec.persistentDisk.pdName: Required value",
      "spec.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive",
    ],
  },
  {
    name: "an elastic block of no id",
    change: { "spec.awsElasticBlockStore": { volumeID: "", partition: 256 } },
    want: [
      "spec.awsElasticBlockStore.volumeID: Required value",
      "spec.awsElasticBlockStore.partition: Invalid value: 256: must be between 1 and 255, inclusive",
    ],
  },
  {
    name: "a Gluster of nothing",
    change: { "spec.glusterfs": { endpoints: "", path: "", endpointsNamespace: "" } },
    want: [
      "spec.glusterfs.endpoints: Required value",
      "spec.glusterfs.path: Required value",
      'spec.glusterfs.endpointsNamespace: Invalid value: "": if the endpointnamespace is set, it must be a valid namespace name',
    ],
  },
  {
    name: "a Gluster in a strange namespace",
    change: { "spec.glusterfs": { endpoints: "e", path: "p", endpointsNamespace: "a.b" } },
    want: [
      "spec.glusterfs.endpointsNamespace: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  },
  {
    name: "a Flocker of nothing, and of two names",
    change: { "spec.flocker": {} },
    want: ["spec.flocker: Required value: one of datasetName and datasetUUID is required"],
  },
  {
    name: "a block of Rados of nothing",
    change: { "spec.rbd": { monitors: [], image: "" } },
    want: ["spec.rbd.monitors: Required value", "spec.rbd.image: Required value"],
  },
  {
    name: "a Quobyte of nothing",
    change: { "spec.quobyte": { registry: "", volume: "" } },
    want: [
      "spec.quobyte.registry: Required value: must be a host:port pair or multiple pairs separated by commas",
      "spec.quobyte.volume: Required value",
    ],
  },
  {
    name: "a Ceph without monitors",
    change: { "spec.cephfs": { monitors: [] } },
    want: ["spec.cephfs.monitors: Required value"],
  },
  {
    name: "an iSCSI of nothing",
    change: { "spec.iscsi": { targetPortal: "", iqn: "", lun: 256, secretRef: {} } },
    want: [
      "spec.iscsi.targetPortal: Required value",
      "spec.iscsi.iqn: Required value",
      "spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
      "spec.iscsi.secretRef.name: Required value",
    ],
  },
  {
    name: "an iSCSI of a long portal and a strange initiator",
    change: { "spec.iscsi": { targetPortal: "p".repeat(60), iqn: "iqn.2015-02.example.com:t", lun: 0, initiatorName: "me" } },
    want: [
      'spec.iscsi.targetportal: Invalid value: "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.',
      'spec.iscsi.initiatorname: Invalid value: "me": must be valid format',
    ],
  },
  {
    name: "a Cinder of nothing",
    change: { "spec.cinder": { volumeID: "", secretRef: {} } },
    want: [
      "spec.cinder.volumeID: Required value",
      "spec.cinder.secretRef.name: Required value",
      "spec.cinder.secretRef.namespace: Required value",
    ],
  },
  {
    name: "a fibre channel of nothing",
    change: { "spec.fc": {} },
    want: ["spec.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"],
  },
  {
    name: "a flexible driver of no name",
    change: { "spec.flexVolume": { driver: "" } },
    want: ["spec.flexVolume.driver: Required value"],
  },
  {
    name: "an Azure file of nothing",
    change: { "spec.azureFile": { secretName: "", shareName: "", secretNamespace: "" } },
    want: [
      "spec.azureFile.secretName: Required value",
      "spec.azureFile.shareName: Required value",
      "spec.azureFile.secretNamespace: Required value",
    ],
  },
  {
    name: "a vSphere volume of nothing",
    change: { "spec.vsphereVolume": { volumePath: "" } },
    want: ["spec.vsphereVolume.volumePath: Required value"],
  },
  {
    name: "a Photon disk of nothing",
    change: { "spec.photonPersistentDisk": { pdID: "" } },
    want: ["spec.photonPersistentDisk.pdID: Required value"],
  },
  {
    name: "a Portworx volume of nothing",
    change: { "spec.portworxVolume": { volumeID: "" } },
    want: ["spec.portworxVolume.volumeID: Required value"],
  },
  {
    name: "an Azure disk of nothing",
    change: { "spec.azureDisk": { diskName: "", diskURI: "", kind: "Shared" } },
    want: [
      "spec.azureDisk.diskName: Required value",
      "spec.azureDisk.diskURI: Required value",
      'spec.azureDisk.diskURI: Unsupported value: "": supported values: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"',
    ],
  },
  {
    name: "a ScaleIO of nothing",
    change: { "spec.scaleIO": { gateway: "", system: "", volumeName: "", secretRef: { name: "s" } } },
    want: [
      "spec.scaleIO.gateway: Required value",
      "spec.scaleIO.system: Required value",
      "spec.scaleIO.volumeName: Required value",
    ],
  },
  {
    name: "a local volume that climbs",
    change: { "spec.local": { path: "../x" }, "spec.nodeAffinity": { required: { nodeSelectorTerms: [{}] } } },
    want: ["spec.local.path: Invalid value: \"../x\": must not contain '..'"],
  },
  {
    name: "a local volume of no path",
    change: { "spec.local": { path: "" } },
    want: ["spec.local.path: Required value", "spec.nodeAffinity: Required value: Local volume requires node affinity"],
  },
  {
    name: "a StorageOS of strange names",
    change: { "spec.storageos": { volumeName: "a.b", volumeNamespace: "a.b", secretRef: {} } },
    want: [
      "spec.storageos.volumeName: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "spec.storageos.volumeNamespace: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "spec.storageos.secretRef.name: Required value",
      "spec.storageos.secretRef.namespace: Required value",
    ],
  },
  { name: "a StorageOS of no name", change: { "spec.storageos": {} }, want: ["spec.storageos.volumeName: Required value"] },
  {
    name: "secrets of a driver",
    change: {
      "spec.csi": {
        driver: "d".repeat(64),
        volumeHandle: "h",
        controllerPublishSecretRef: {},
        controllerExpandSecretRef: { name: "a.b", namespace: "n" },
        nodePublishSecretRef: { name: "a" },
      },
    },
    want: [
      "spec.csi.driver: Too long: must have at most 63 bytes",
      "spec.csi.controllerPublishSecretRef.name: Required value",
      "spec.csi.controllerPublishSecretRef.namespace: Required value",
      "spec.csi.name: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "spec.csi.nodePublishSecretRef .namespace: Required value",
    ],
  },
  {
    name: "an iSCSI portal of as many characters as the name of the volume leaves",
    change: { "spec.iscsi": iscsi("p".repeat(64 - "valid:".length)) },
    want: [],
  },
  {
    name: "an iSCSI portal of one character too many",
    change: { "spec.iscsi": iscsi("p".repeat(65 - "valid:".length)) },
    want: [
      `spec.iscsi.targetportal: Invalid value: "${"p".repeat(59)}": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.`,
    ],
  },
  {
    name: "a Cinder volume whose secret has no namespace",
    change: { "spec.cinder": { volumeID: "v", secretRef: { name: "s" } } },
    want: ["spec.cinder.secretRef.namespace: Required value"],
  },
  {
    name: "an Azure file share whose secret is in an empty namespace",
    change: { "spec.azureFile": { secretName: "s", shareName: "t", secretNamespace: "" } },
    want: ["spec.azureFile.secretNamespace: Required value"],
  },
  { name: "an Azure file share", change: { "spec.azureFile": { secretName: "s", shareName: "t" } }, want: [] },
  {
    name: "a driver with all its secrets",
    change: {
      "spec.csi": {
        ...{ driver: "A.b", volumeHandle: "h" },
        ...Object.fromEntries(
          ["controllerPublish", "controllerExpand", "nodePublish"].map((use) => [
            `${use}SecretRef`,
            { name: "a", namespace: "n" },
          ]),
        ),
      },
    },
    want: [],
  },
  {
    name: "a Gluster with the namespace of its endpoints",
    change: { "spec.glusterfs": { endpoints: "e", path: "p", endpointsNamespace: "n" } },
    want: [],
  },
]);
