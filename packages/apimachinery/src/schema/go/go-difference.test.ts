import assert from "node:assert/strict";
import { test } from "node:test";
import { goDifference } from "./go-difference.ts";

const spec = () => ({
  volumes: [{ name: "v", emptyDir: {} }],
  containers: [
    {
      name: "c",
      image: "x",
      ports: [{ hostPort: 80, containerPort: 80, protocol: "TCP" }],
      resources: { requests: { cpu: "100m", memory: "1Gi" } } as { requests: Record<string, string> },
      args: undefined as string[] | undefined,
    },
  ],
  restartPolicy: "Never",
  terminationGracePeriodSeconds: 30,
  dnsPolicy: "ClusterFirst",
  hostNetwork: true,
  hostname: "",
  nodeSelector: { k: "v" } as Record<string, string>,
  schedulerName: "default-scheduler",
});

function differs(name: string, change: (next: ReturnType<typeof spec>) => void, want: string): void {
  test(name, () => {
    const next = spec();
    change(next);
    assert.equal(goDifference("core/v1.PodSpec", next, spec()), want.replace(/^\n/, ""));
  });
}

differs(
  "shows each difference with its neighbours, and counts the rest",
  (next) => {
    next.terminationGracePeriodSeconds = 5;
    next.hostname = "x";
    (next.containers[0] as { args?: string[] }).args = ["a", "b"];
  },
  `
  core.PodSpec{
  	Volumes:        {{Name: "v", VolumeSource: {EmptyDir: &{}}}},
  	InitContainers: nil,
  	Containers: []core.Container{
  		{
  			Name:       "c",
  			Image:      "x",
  			Command:    nil,
- 			Args:       []string{"a", "b"},
+ 			Args:       nil,
  			WorkingDir: "",
  			Ports:      {{HostPort: 80, ContainerPort: 80, Protocol: "TCP"}},
  			... // 16 identical fields
  		},
  	},
  	EphemeralContainers:           nil,
  	RestartPolicy:                 "Never",
- 	TerminationGracePeriodSeconds: &5,
+ 	TerminationGracePeriodSeconds: &30,
  	ActiveDeadlineSeconds:         nil,
  	DNSPolicy:                     "ClusterFirst",
  	... // 4 identical fields
  	SecurityContext:   &{HostNetwork: true},
  	ImagePullSecrets:  nil,
- 	Hostname:          "x",
+ 	Hostname:          "",
  	Subdomain:         "",
  	SetHostnameAsFQDN: nil,
  	... // 14 identical fields
  }
`,
);

differs(
  "marks what is removed and inserted in lists and maps",
  (next) => {
    next.volumes = [];
    next.nodeSelector = { k: "v", z: "1" };
    (next.containers[0] as { resources: { requests: Record<string, string> } }).resources.requests["cpu"] = "1";
  },
  `
  core.PodSpec{
- 	Volumes: []core.Volume{},
+ 	Volumes: []core.Volume{
+ 		{
+ 			Name:         "v",
+ 			VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}},
+ 		},
+ 	},
  	InitContainers: nil,
  	Containers: []core.Container{
  		{
  			... // 6 identical fields
  			EnvFrom: nil,
  			Env:     nil,
  			Resources: core.ResourceRequirements{
  				Limits: nil,
  				Requests: core.ResourceList{
- 					s"cpu":    {i: resource.int64Amount{value: 1}, s: "1", Format: "DecimalSI"},
+ 					s"cpu":    {i: resource.int64Amount{value: 100, scale: -3}, s: "100m", Format: "DecimalSI"},
  					s"memory": {i: {...}, s: "1Gi", Format: "BinarySI"},
  				},
  			},
  			VolumeMounts:  nil,
  			VolumeDevices: nil,
  			... // 11 identical fields
  		},
  	},
  	EphemeralContainers:           nil,
  	RestartPolicy:                 "Never",
  	TerminationGracePeriodSeconds: &30,
  	ActiveDeadlineSeconds:         nil,
  	DNSPolicy:                     "ClusterFirst",
  	NodeSelector: map[string]string{
  		"k": "v",
- 		"z": "1",
  	},
  	ServiceAccountName:           "",
  	AutomountServiceAccountToken: nil,
  	... // 20 identical fields
  }
`,
);

test("tells selectors by their own text", () => {
  const next = { accessModes: ["ReadOnlyMany", "ReadWriteOnce"] };
  const current = { accessModes: ["ReadWriteOnce"], selector: { matchLabels: { a: "b" } } };
  assert.equal(
    goDifference("core/v1.PersistentVolumeClaimSpec", next, current),
    `  core.PersistentVolumeClaimSpec{
  	AccessModes: []core.PersistentVolumeAccessMode{
- 		"ReadOnlyMany",
  		"ReadWriteOnce",
  	},
- 	Selector:   nil,
+ 	Selector:   s"&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}",
  	Resources:  {},
  	VolumeName: "",
  	... // 4 identical fields
  }
`.replace('Resources: {},\n  	VolumeName: ""', 'Resources: {},\n  	VolumeName: ""'),
  );
});

test("compares long lists place by place", () => {
  const of = (n: number) => ({ nameservers: Array.from({ length: 200 }, (_, i) => (i === n ? "x" : `s${i}`)) });
  const text = goDifference("core/v1.PodDNSConfig", of(7), of(100));
  assert.match(text, /... \/\/ 5 identical elements/);
  assert.match(text, /- \t\t"x",\n\+ \t\t"s7",/);
});
