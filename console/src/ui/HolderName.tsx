// Whose units they are: a pod by its name where it is known, else the consumer by its UUID.
import { href } from "../app/address";
import { Name, ShortId } from "./Name";

interface HolderNameProps {
  uuid: string;
  pod: string | null;
  namespace: string;
}

export function HolderName({ uuid, pod, namespace }: HolderNameProps) {
  return (
    <a href={href(`/holders/${uuid}`)} title={uuid}>
      {pod ? <PodName of={pod} namespace={namespace} /> : <ShortId of={uuid} />}
    </a>
  );
}

export function PodName({ of, namespace }: { of: string; namespace: string }) {
  return (
    <>
      <Name of={namespace} />/<Name of={of} />
    </>
  );
}
