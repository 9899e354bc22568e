"""The query language of allocation candidates, spoken by Placement and by Dovetail alike."""
