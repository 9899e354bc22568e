"""The HTTP edge: routes, versions, schemas, error shapes. Rules live below."""
