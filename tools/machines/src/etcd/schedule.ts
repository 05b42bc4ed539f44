/** Snapshots by a timer of systemd. */
import { join } from "node:path";
import type { WantedFile } from "../host/files.ts";
import { unitFolder } from "../host/systemd.ts";
import { header, quoted } from "../host/units.ts";

export const timer = "coxswain-etcd-snapshot.timer";

export interface Schedule {
  /** As in systemd.time(7): `daily`, `*-*-* 0/6:00`. */
  readonly onCalendar: string;
  /** The command line of one snapshot. */
  readonly words: readonly string[];
}

/** Pure. */
export const scheduleUnits = ({ onCalendar, words }: Schedule): WantedFile[] => [
  {
    path: join(unitFolder, timer.replace(".timer", ".service")),
    content: `${header}[Unit]
Description=Snapshot of etcd
After=etcd.service

[Service]
Type=oneshot
ExecStart=${words.map(quoted).join(" ")}
`,
  },
  {
    path: join(unitFolder, timer),
    content: `${header}[Unit]
Description=Snapshots of etcd

[Timer]
OnCalendar=${onCalendar}
# One that was missed while the machine was off.
Persistent=true
RandomizedDelaySec=60

[Install]
WantedBy=timers.target
`,
  },
];
