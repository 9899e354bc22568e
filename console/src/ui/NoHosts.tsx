// A ledger without hosts: that is said, and how some get into it.

export function NoHosts() {
  return (
    <section class="card" aria-labelledby="no-hosts-title">
      <h2 id="no-hosts-title">There are no hosts in this ledger yet</h2>
      <p>They are shown here as soon as there are some. They come from</p>
      <ul class="ways">
        <li>
          a fleet file: <code>dovetail load fleet.jsonl</code>, or <code>POST /dovetail/v1/fleet</code>;
        </li>
        <li>
          whatever speaks the Placement API: <code>POST /resource_providers</code>;
        </li>
        <li>Kubernetes clusters that are registered, and nodes that publish their devices;</li>
        <li>
          or, to look around, a demo fleet: <code>dovetail serve --demo</code>.
        </li>
      </ul>
    </section>
  );
}
