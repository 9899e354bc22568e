// Machines as GET /dovetail/v1/machines tells them: groups, their stock, who holds units and who waits. What only
// the operator knows is null where it told nothing of the group.

export interface MachineType {
  type: string;
  max: number;
  reserved: number;
  used: number;
  waiting: number | null;
}

/** A unit that a pod holds; one of stock is held for whoever comes next. */
export interface HeldUnit {
  consumer: string;
  type: string;
  node: string;
  stock: boolean;
  project: string;
  pod: string | null;
  user: string;
  from: string;
  /** Until when it is lent; null, too, if that has no end. */
  until: string | null;
}

/** A guest in line; the turn of one without a reason is to come. */
export interface QueuedGuest {
  position: number;
  consumer: string;
  type: string;
  project: string;
  pod: string;
  since: string | null;
  reason: string | null;
  message: string;
}

export interface MachineGroup {
  cluster: string;
  name: string;
  types: MachineType[];
  holders: HeldUnit[];
  queue: QueuedGuest[] | null;
  told_at: string | null;
}

/** Those of the queue that are not told: a very long one is told from its beginning. */
export function untold({ types, queue }: MachineGroup): number {
  if (queue === null) return 0;
  return types.reduce((more, { type, waiting }) => {
    const told = queue.filter((each) => each.type === type).length;
    return more + Math.max(0, (waiting ?? 0) - told);
  }, 0);
}
