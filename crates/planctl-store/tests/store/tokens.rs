//! Tokens of the API: the secret once, its hash for ever, and nothing to tell a revoked one from an unknown one by.

use std::time::Duration;

use planctl_engine::Role;
use planctl_store::{
    Begun, NewToken, NewlyMade, Page, Request, RequestKey, Store, StoreError, TokenRow, TokenScope,
};
use sqlx::Executor as _;

use crate::world::world;

fn new(scope: TokenScope) -> NewToken<'static> {
    NewToken { name: "ci", person: None, scope, roles: &[], lasts: None, request: None }
}

async fn make(store: &Store, new: &NewToken<'_>) -> (TokenRow, String) {
    match store.create_token(new).await.unwrap() {
        NewlyMade::Token(token, secret) => (token, secret),
        NewlyMade::Before(token) => panic!("{token:?} was made before"),
    }
}

#[tokio::test]
async fn a_secret_finds_its_token_and_is_stored_nowhere() {
    let world = world(1).await;
    let roles = [Role::new("coder"), Role::new("reviewer")];
    let wanted =
        NewToken { roles: &roles, lasts: Some(Duration::from_secs(3600)), ..new(TokenScope::Worker) };
    let (made, secret) = make(&world.store, &wanted).await;
    assert!(
        secret.starts_with("planctl_worker_") && secret.len() == "planctl_worker_".len() + 64,
        "{secret}"
    );
    assert_eq!((made.name.as_str(), made.scope, &made.roles[..]), ("ci", TokenScope::Worker, &roles[..]));
    assert!(made.is_live && made.expires_at.is_some() && made.last_used_at.is_none());
    let found = world.store.token_of(&secret).await.unwrap().unwrap();
    assert_eq!(found.id, made.id);
    let listed = world.store.tokens(&Page::ALL).await.unwrap();
    assert!(listed[0].last_used_at.is_some(), "{listed:?}");
    let stored: String = sqlx::query_scalar("select string_agg(t::text, ' ') from tokens t")
        .fetch_one(&mut world.aside().await)
        .await
        .unwrap();
    assert!(!stored.contains(&secret[15..]), "{stored}");
}

#[tokio::test]
async fn unknown_expired_and_revoked_secrets_are_alike() {
    let world = world(1).await;
    let store = &world.store;
    let (revoked, revoked_secret) = make(store, &new(TokenScope::Read)).await;
    let short = NewToken { lasts: Some(Duration::ZERO), ..new(TokenScope::Read) };
    let (expired, expired_secret) = make(store, &short).await;
    assert!(!expired.is_live);
    let first = store.revoke_token(&revoked.id).await.unwrap();
    let second = store.revoke_token(&revoked.id).await.unwrap();
    assert!(!first.is_live && first.revoked_at == second.revoked_at);
    let (_, good) = make(store, &new(TokenScope::Read)).await;
    let raised = good.replace("_read_", "_admin_");
    let unknown = format!("planctl_read_{}", "ab".repeat(32));
    for secret in
        [&revoked_secret, &expired_secret, &raised, &unknown, "", "planctl_read_", "planctl_read_xyz"]
    {
        assert!(store.token_of(secret).await.unwrap().is_none(), "{secret}");
    }
    assert!(store.token_of(&good).await.unwrap().is_some());
    assert!(matches!(store.revoke_token("nosuch").await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.tokens(&Page::ALL).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_use_is_noted_once_a_minute() {
    let world = world(1).await;
    let (_, secret) = make(&world.store, &new(TokenScope::Admin)).await;
    let used = async || {
        world.store.token_of(&secret).await.unwrap().unwrap();
        world.store.tokens(&Page::ALL).await.unwrap()[0].last_used_at
    };
    let first = used().await;
    assert_eq!(used().await, first);
    let mut aside = world.aside().await;
    aside.execute("update tokens set last_used_at = last_used_at - interval '61 seconds'").await.unwrap();
    assert!(used().await >= first);
}

#[tokio::test]
async fn a_request_makes_one_token_and_is_told_its_secret_once() {
    let world = world(1).await;
    let request = Request::new("ann", RequestKey::parse("k").unwrap(), "POST /v1/tokens", b"{}");
    let Begun::Fresh(turn) = world.store.begin_request(&request).await.unwrap() else { panic!("fresh") };
    let wanted = NewToken { request: Some(turn.id), ..new(TokenScope::Admin) };
    let (made, _) = make(&world.store, &wanted).await;
    let again = world.store.create_token(&wanted).await.unwrap();
    assert!(matches!(&again, NewlyMade::Before(token) if token.id == made.id), "{again:?}");
    assert_eq!(world.store.tokens(&Page::ALL).await.unwrap().len(), 1);
}
